"""A server without any library, for what no well-behaved one does; each tool is a way to behave."""

import json
import os
import sys
import time


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def answer(message):
    tool, number = message["params"]["name"], message["id"]
    result = {"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": tool}]}}
    if tool == "read_dying":
        os._exit(7)
    if tool == "read_closing":
        sys.exit(0)
    if tool == "read_deaf":
        return
    if tool == "read_noisy":
        say("some words on the wrong stream")
    if tool == "read_double":
        say(f'{{"id":{number},"id":{number},"result":{{}}}}')
        return
    if tool == "read_long":
        say(json.dumps(result | {"x": "x" * 200_000}))
        return
    if tool == "read_slowly":
        time.sleep(0.3)
    say(json.dumps(result))


def main():
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        message = json.loads(line)
        if message.get("method") == "tools/call":
            answer(message)
        elif "id" in message and "method" in message:
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
    if "--stay" in sys.argv:
        time.sleep(60)


if __name__ == "__main__":
    main()
