"""A server without any library, for what no well-behaved one does; each tool is a way to behave."""

import json
import os
import sys
import time


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
        print("some words on the wrong stream")
    if tool == "read_double":
        print(f'{{"id":{number},"id":{number},"result":{{}}}}', flush=True)
        return
    if tool == "read_long":
        print(json.dumps(result | {"x": "x" * 200_000}), flush=True)
        return
    if tool == "read_slowly":
        time.sleep(0.3)
    print(json.dumps(result), flush=True)


def main():
    sys.stdin.reconfigure(newline="\n")
    for line in sys.stdin:
        if not line.strip():
            continue
        message = json.loads(line)
        if message.get("method") == "tools/call":
            answer(message)
        elif "id" in message and "method" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
    if "--stay" in sys.argv:
        time.sleep(60)


if __name__ == "__main__":
    main()
