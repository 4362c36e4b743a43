"""What psycopg 3, SQLAlchemy and psql must be able to do; the address comes from PGHOST and its kin. Started by pg-clients-test."""
import datetime as dt
import decimal
import math
import shutil
import subprocess
import threading
import time
import traceback
import uuid

import psycopg
import sqlalchemy
import sqlalchemy.dialects.postgresql
import sqlalchemy.orm
from psycopg import pq
from psycopg.rows import tuple_row

TESTS = []
PREFIX = "pgct_" + uuid.uuid4().hex[:8]


def test(function):
    TESTS.append(function)
    return function


def connect(**options):
    options.setdefault("autocommit", True)
    return psycopg.connect("", **options)


def table(connection, name, columns):
    """Makes a table of this run's own and returns its name."""
    name = f"{PREFIX}_{name}"
    connection.execute(f"CREATE TABLE {name} ({columns})")
    return name


def raises(state, call):
    """Calls, wants the error with this SQLSTATE and returns it."""
    try:
        call()
    except psycopg.Error as error:
        assert error.sqlstate == state, f"SQLSTATE {error.sqlstate} instead of {state}: {error}"
        return error
    raise AssertionError(f"no error; {state} expected")


@test
def startup_reports_what_drivers_read():
    with connect(application_name="pg-clients-test") as c:
        status = c.info.parameter_status
        assert status("server_encoding") == status("client_encoding") == "UTF8"
        assert status("standard_conforming_strings") == "on" and status("integer_datetimes") == "on"
        assert status("DateStyle").startswith("ISO") and status("TimeZone")
        assert status("application_name") == "pg-clients-test"
        assert c.info.server_version >= 130000 and c.info.backend_pid != 0


@test
def any_database_name_is_accepted():
    for name in ("root", "dev", "no_such_database"):
        with connect(dbname=name) as c:
            assert c.execute("SELECT 1").fetchone() == (1,)


@test
def simple_statements_and_rows():
    with connect() as c:
        assert c.execute("SELECT 1, 'two', 3.5, NULL, true").fetchone() == (1, "two", decimal.Decimal("3.5"), None, True)
        assert c.execute("SELECT 'naïve 🌊'").fetchone() == ("naïve 🌊",)


VALUES = [
    ("boolean", True), ("smallint", -32768), ("integer", 2147483647), ("bigint", -9223372036854775808),
    ("real", 1.5), ("double precision", -2.25e-300), ("numeric", decimal.Decimal("-12345678901234567890.0123")),
    ("numeric", decimal.Decimal("0.00001")), ("varchar", "it's a 'string' of more than twelve bytes"), ("varchar", ""),
    ("bytea", bytes(range(256))), ("date", dt.date(1969, 12, 31)), ("date", dt.date(2024, 2, 29)),
    ("time", dt.time(23, 59, 59, 999999)), ("timestamp", dt.datetime(1999, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", dt.datetime(2024, 6, 1, 12, 0, 0, 5, tzinfo=dt.timezone.utc)),
    ("interval", dt.timedelta(days=3, seconds=4, microseconds=5)), ("jsonb", {"a": [1, None, "x"], "b": {"c": True}}),
]


def adapt(kind, value):
    return psycopg.types.json.Jsonb(value) if kind == "jsonb" else value


def round_trip(parameter, binary):
    with connect() as c:
        c.execute("SET TimeZone = 'UTC'")
        bad = []
        for kind, value in VALUES:
            with c.cursor(binary=binary) as cursor:
                try:
                    got = cursor.execute(f"SELECT {parameter}::{kind}", (adapt(kind, value),)).fetchone()[0]
                    if got != value:
                        bad.append(f"{kind} {value!r} became {got!r}")
                    if cursor.execute(f"SELECT {parameter}::{kind}", (None,)).fetchone() != (None,):
                        bad.append(f"{kind} NULL")
                except psycopg.Error as error:
                    bad.append(f"{kind} {value!r}: {error}")
                    if c.broken:
                        break
        assert not bad, "; ".join(bad)


@test
def text_parameters_and_text_results():
    round_trip("%t", False)


@test
def text_parameters_and_binary_results():
    round_trip("%t", True)


@test
def binary_parameters_and_text_results():
    round_trip("%b", False)


@test
def binary_parameters_and_binary_results():
    round_trip("%b", True)


@test
def special_floats_and_numerics():
    with connect() as c:
        for binary in (False, True):
            with c.cursor(binary=binary) as cursor:
                row = cursor.execute("SELECT 'NaN'::float8, 'Infinity'::float8, '-Infinity'::float4, 'NaN'::numeric").fetchone()
                assert math.isnan(row[0]) and row[1] == math.inf and row[2] == -math.inf and row[3].is_nan()


@test
def lists_are_parameters_of_any():
    with connect() as c:
        name = table(c, "lists", "id integer PRIMARY KEY, name varchar")
        c.execute(f"INSERT INTO {name} VALUES (1, 'a b'), (2, 'c'), (70000, NULL)")
        for column, values, found in (
                ("id", [1, 70000, 3], [1, 70000]), ("id", [], []), ("id", [None, 2], [2]), ("name", ["a b", "x"], [1]), ("name", ['"'], [])):
            for form in ("%s", "%t"):
                rows = c.execute(f"SELECT id FROM {name} WHERE {column} = ANY({form}) ORDER BY id", (values,)).fetchall()
                assert [r[0] for r in rows] == found, (column, values, form, rows)


@test
def prepared_statements_follow_their_view():
    with connect(prepare_threshold=0) as c:
        name = table(c, "base", "id integer PRIMARY KEY, name varchar")
        c.execute(f"INSERT INTO {name} VALUES (1, 'ann')")
        for columns, row in (("id, name", (1, "ann")), ("name", ("ann",)), ("name, id, 3 AS n", ("ann", 1, 3))):
            c.execute(f"CREATE VIEW {name}_view AS SELECT {columns} FROM {name}")
            for _ in range(3):
                assert c.execute(f"SELECT * FROM {name}_view").fetchone() == row
            # psycopg forgets its statements when it sees the tag of a DROP.
            assert c.execute(f"DROP VIEW {name}_view").statusmessage == "DROP VIEW"
        with connect(prepare_threshold=0) as other:
            c.execute(f"CREATE VIEW {name}_view AS SELECT id FROM {name}")
            assert other.execute(f"SELECT * FROM {name}_view").fetchone() == (1,)
            c.execute(f"DROP VIEW {name}_view")
            c.execute(f"CREATE VIEW {name}_view AS SELECT id, name FROM {name}")
            raises("0A000", lambda: other.execute(f"SELECT * FROM {name}_view"))
            c.execute(f"DROP VIEW {name}_view")


@test
def statements_time_out():
    with connect(options="-c statement_timeout=200ms") as c:
        assert c.execute("SHOW statement_timeout").fetchone() == ("200ms",)
        name = table(c, "long", "id integer PRIMARY KEY")
        c.execute(f"INSERT INTO {name} VALUES " + ",".join(f"({i})" for i in range(2000)))
        error = raises("57014", lambda: c.execute(f"SELECT count(*) FROM {name} a, {name} b, {name} c WHERE a.id + b.id + c.id < 0"))
        assert "statement timeout" in str(error)
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def savepoints_take_their_writes_back():
    with connect(autocommit=False) as c:
        name = table(c, "nested", "id integer PRIMARY KEY")
        with c.transaction():
            c.execute(f"INSERT INTO {name} VALUES (1)")
            try:
                with c.transaction():
                    c.execute(f"INSERT INTO {name} VALUES (2)")
                    c.execute("SELECT 1 / 0").fetchall()
            except psycopg.errors.DivisionByZero:
                pass
            c.execute(f"INSERT INTO {name} VALUES (3)")
        c.commit()
        assert c.execute(f"SELECT id FROM {name} ORDER BY id").fetchall() == [(1,), (3,)]


@test
def rows_go_into_a_table_and_come_back():
    with connect() as c:
        name = table(c, "rows", "id integer PRIMARY KEY, name varchar, amount numeric, at timestamp")
        at = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
        with c.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {name} VALUES (%s, %s, %s, %s)",
                [(i, None if i % 10 == 0 else f"name {i}", decimal.Decimal(i) / 4, at) for i in range(100)])
        rows = c.execute(f"SELECT * FROM {name} ORDER BY id").fetchall()
        assert len(rows) == 100 and rows[0] == (0, None, 0, at) and rows[7] == (7, "name 7", decimal.Decimal("1.75"), at)
        cursor = c.execute(f"SELECT id FROM {name} WHERE name IS NULL ORDER BY id")
        assert [r[0] for r in cursor] == list(range(0, 100, 10)) and cursor.statusmessage == "SELECT 10"


@test
def status_messages_and_row_counts():
    with connect() as c:
        name = table(c, "tags", "id integer PRIMARY KEY")
        assert c.execute(f"INSERT INTO {name} VALUES (1), (2)").statusmessage == "INSERT 0 2"
        cursor = c.execute(f"SELECT * FROM {name}")
        assert cursor.rowcount == 2 and cursor.description[0].name == "id" and cursor.description[0].type_code == 23


@test
def prepared_statements_are_reused():
    with connect(prepare_threshold=0) as c:
        for i in range(20):
            assert c.execute("SELECT %s::integer + 1", (i,)).fetchone() == (i + 1,)


@test
def statements_are_described_and_closed_by_name():
    with connect() as c:
        pg = c.pgconn
        assert pg.prepare(b"s", b"SELECT $1::int4 AS a, $2::varchar AS b").status == pq.ExecStatus.COMMAND_OK
        result = pg.describe_prepared(b"s")
        assert (result.nparams, result.param_type(0), result.nfields, result.fname(1)) == (2, 23, 2, b"b")
        result = pg.exec_prepared(b"s", [b"5", None])
        assert result.get_value(0, 0) == b"5" and result.get_value(0, 1) is None
        assert pg.prepare(b"s", b"SELECT 1").error_field(pq.DiagnosticField.SQLSTATE) == b"42P05"
        assert pg.exec_prepared(b"none", []).error_field(pq.DiagnosticField.SQLSTATE) == b"26000"


@test
def statements_named_by_a_library_are_deallocated():
    """What psycopg sends for a statement that it lets go, where its libpq has no Close."""
    with connect(autocommit=True) as c:
        pg = c.pgconn

        def state(result):
            return result.error_field(pq.DiagnosticField.SQLSTATE)

        for text, names in ((b"DEALLOCATE d1", [b"d1"]), (b'DEALLOCATE "D 2"', [b"D 2"]), (b"DEALLOCATE ALL", [b"d1", b"d3"]), (b"DISCARD ALL", [b"d1", b"d3"])):
            for by_parse in (False, True):
                for name in names:
                    assert pg.prepare(name, b"SELECT 1").status == pq.ExecStatus.COMMAND_OK, (text, name)
                result = pg.exec_params(text, []) if by_parse else pg.exec_(text)
                tag = text if text.endswith(b" ALL") else b"DEALLOCATE"
                assert (result.status, result.command_status) == (pq.ExecStatus.COMMAND_OK, tag), (text, result.status, result.command_status)
                for name in names:
                    assert state(pg.exec_prepared(name, [])) == b"26000", (text, name)
        assert state(pg.exec_(b"DEALLOCATE d1")) == b"26000"
        assert pg.prepare(b"d1", b"SELECT 1").status == pq.ExecStatus.COMMAND_OK
        pg.exec_(b"BEGIN")
        assert state(pg.exec_(b"SELECT nope")) == b"42703"
        assert state(pg.exec_(b"DEALLOCATE d1")) == b"25P02"
        pg.exec_(b"ROLLBACK; BEGIN")
        assert state(pg.exec_(b"DISCARD ALL")) == b"25001"
        pg.exec_(b"ROLLBACK")
        assert pg.exec_prepared(b"d1", []).get_value(0, 0) == b"1"


@test
def several_statements_in_one_message():
    with connect() as c:
        cursor = c.execute("SELECT 1; SELECT 2, 3; SELECT 4 WHERE false")
        sets = [cursor.fetchall()]
        while cursor.nextset():
            sets.append(cursor.fetchall())
        assert sets == [[(1,)], [(2, 3)], []]
        result = c.pgconn.exec_(b"SELECT 1; SELECT nope; SELECT 2")
        assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"42703"
        assert result.error_field(pq.DiagnosticField.STATEMENT_POSITION) == b"18"
        raises("42601", lambda: c.execute("SELECT %s; SELECT 2", (1,)))


@test
def empty_statements():
    with connect() as c:
        for text in ("", "  ", ";", "-- only a comment"):
            assert c.pgconn.exec_(text.encode()).status == pq.ExecStatus.EMPTY_QUERY, repr(text)
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def errors_carry_state_and_position():
    with connect() as c:
        error = raises("42601", lambda: c.execute("SELEC 1"))
        assert error.diag.severity == "ERROR" and error.diag.statement_position == "1"
        error = raises("42P01", lambda: c.execute(f"SELECT 'é' FROM {PREFIX}_missing"))
        assert error.diag.statement_position == "17" and f"{PREFIX}_missing" in error.diag.message_primary
        error = raises("42703", lambda: c.execute("SELECT nope, %s", (1,)))
        assert error.diag.statement_position == "8"
        raises("22012", lambda: c.execute("SELECT 1 / 0"))
        raises("22P02", lambda: c.execute("SELECT 'x'::integer"))
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def failed_blocks_refuse_until_rollback():
    with connect(autocommit=False) as c:
        c.execute("SELECT 1")
        assert c.info.transaction_status == pq.TransactionStatus.INTRANS
        raises("42703", lambda: c.execute("SELECT nope"))
        assert c.info.transaction_status == pq.TransactionStatus.INERROR
        raises("25P02", lambda: c.execute("SELECT 1"))
        c.rollback()
        assert c.info.transaction_status == pq.TransactionStatus.IDLE
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def pipelines_answer_in_order_and_skip_after_an_error():
    with connect() as c:
        with c.pipeline():
            cursors = [c.execute("SELECT %s::integer", (i,)) for i in range(200)]
        assert [cursor.fetchone()[0] for cursor in cursors] == list(range(200))
        pg = c.pgconn
        pg.enter_pipeline_mode()
        for text in (b"SELECT 1", b"SELECT nope", b"SELECT 3"):
            pg.send_query_params(text, [])
        pg.pipeline_sync()
        statuses = []
        while not statuses or statuses[-1] != pq.ExecStatus.PIPELINE_SYNC:
            result = pg.get_result()
            if result is not None:
                statuses.append(result.status)
        pg.exit_pipeline_mode()
        assert statuses == [pq.ExecStatus.TUPLES_OK, pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED, pq.ExecStatus.PIPELINE_SYNC]
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def writes_count_their_rows():
    with connect() as c:
        name = table(c, "counts", "id integer PRIMARY KEY, n integer, s varchar")
        for statement, status in [
            (f"INSERT INTO {name} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')", "INSERT 0 3"),
            (f"UPDATE {name} SET n = n + 10 WHERE id > 1", "UPDATE 2"),
            (f"UPDATE {name} SET n = 0 WHERE id > 99", "UPDATE 0"),
            (f"INSERT INTO {name} VALUES (3, 0, ''), (4, 4, 'd') ON CONFLICT DO NOTHING", "INSERT 0 1"),
            (f"INSERT INTO {name} VALUES (3, 1, ''), (5, 5, 'e') ON CONFLICT (id) DO UPDATE SET n = {name}.n + excluded.n", "INSERT 0 2"),
            (f"DELETE FROM {name} WHERE id IN (1, 2)", "DELETE 2"),
        ]:
            cursor = c.execute(statement)
            assert cursor.statusmessage == status and cursor.rowcount == int(status.split()[-1]), (statement, cursor.statusmessage)
        assert c.execute(f"DELETE FROM {name} WHERE id = 3 RETURNING id, n, s").fetchall() == [(3, 14, "c")]
        cursor = c.execute(f"UPDATE {name} SET s = upper(s) RETURNING s, id")
        assert cursor.statusmessage == "UPDATE 2" and sorted(cursor.fetchall()) == [("D", 4), ("E", 5)]
        assert c.execute(f"TRUNCATE {name}").statusmessage == "TRUNCATE TABLE"
        assert c.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)


def many_writes_with_parameters(binary):
    with connect() as c, c.cursor(binary=binary) as cursor:
        name = table(c, "many" + uuid.uuid4().hex[:4], "id integer PRIMARY KEY, n bigint, s varchar, at timestamptz, d numeric(10, 2)")
        at = dt.datetime(2024, 6, 1, 12, 0, 0, 5, tzinfo=dt.timezone.utc)
        rows = [(number, number * 10, f"row {number}", at, decimal.Decimal(number) / 4) for number in range(500)]
        cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)", rows)
        assert cursor.rowcount == 500
        cursor.executemany(f"UPDATE {name} SET n = n + %s, s = %s WHERE id = %s", [(1, "changed", number) for number in range(0, 500, 2)])
        assert cursor.rowcount == 250
        upsert = f"INSERT INTO {name} (id, n) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET n = {name}.n - excluded.n WHERE {name}.id <> %s"
        cursor.executemany(upsert, [(number, number, 7) for number in range(495, 505)])
        cursor.executemany(f"DELETE FROM {name} WHERE id = %s OR s = %s", [(number, "nothing") for number in range(1, 500, 2)])
        assert cursor.rowcount == 250
        cursor.execute(f"SELECT count(*), sum(n), min(s), max(at), sum(d) FROM {name}")
        expected = sum(10 * n + 1 - (n if n >= 495 else 0) for n in range(0, 500, 2)) + sum(range(500, 505))
        assert cursor.fetchone() == (255, expected, "changed", at, decimal.Decimal(sum(range(0, 500, 2))) / 4)
        cursor.executemany(f"INSERT INTO {name} (id) VALUES (%s) RETURNING id", [(1000,), (1001,)], returning=True)
        returned = []
        while True:
            returned += cursor.fetchall()
            if not cursor.nextset():
                break
        assert returned == [(1000,), (1001,)], returned


@test
def many_writes_with_text_results():
    many_writes_with_parameters(False)


@test
def many_writes_with_binary_results():
    many_writes_with_parameters(True)


@test
def blocks_that_meet_fail_with_40001():
    with connect(autocommit=False) as a, connect(autocommit=False) as b, connect() as c:
        name = table(c, "meet", "id integer PRIMARY KEY, n integer")
        c.execute(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        a.execute(f"UPDATE {name} SET n = n + 1 WHERE id = 1")
        b.execute(f"UPDATE {name} SET n = n + 10 WHERE id = 1")
        a.commit()
        assert b.execute(f"SELECT n FROM {name} WHERE id = 1").fetchone() == (11,)
        raises("40001", b.commit)
        b.rollback()
        b.execute(f"UPDATE {name} SET n = n + 10 WHERE id = 1")
        b.commit()
        assert c.execute(f"SELECT n FROM {name} WHERE id = 1").fetchone() == (12,)
        with a.transaction():
            a.execute(f"DELETE FROM {name}")
            try:
                with a.transaction():
                    a.execute(f"INSERT INTO {name} VALUES (9, 9)")
                    a.execute("SELECT 1 / 0")
            except psycopg.errors.DivisionByZero:
                pass
            assert a.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)
        assert c.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)


@test
def sqlalchemy_keeps_its_objects_here():
    base = sqlalchemy.orm.declarative_base()

    class Item(base):
        __tablename__ = f"{PREFIX}_items"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True, autoincrement=False)
        name = sqlalchemy.Column(sqlalchemy.String, nullable=False)
        price = sqlalchemy.Column(sqlalchemy.Numeric(10, 2))
        changed = sqlalchemy.Column(sqlalchemy.DateTime(timezone=True))

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(""), use_native_hstore=False)
    base.metadata.create_all(engine)
    at = dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.timezone.utc)
    with sqlalchemy.orm.Session(engine) as session:
        session.add_all([Item(id=number, name=f"item {number}", price=decimal.Decimal(number), changed=at) for number in range(20)])
        session.commit()
        third = session.get(Item, 3)
        third.name = "third"
        session.delete(session.get(Item, 4))
        session.flush()
        assert session.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(Item)) == 19
        session.commit()
        changed = session.execute(
            sqlalchemy.update(Item).where(Item.price >= 10).values(price=Item.price * 2).returning(Item.id, Item.price)).all()
        assert len(changed) == 10 and (10, decimal.Decimal("20.00")) in changed, changed
        upsert = sqlalchemy.dialects.postgresql.insert(Item).values([{"id": 3, "name": "again"}, {"id": 30, "name": "new"}])
        session.execute(upsert.on_conflict_do_update(index_elements=[Item.id], set_={"name": upsert.excluded.name}))
        session.execute(sqlalchemy.delete(Item).where(Item.id.in_([0, 1, 2])))
        session.rollback()
        assert session.get(Item, 3).name == "third" and session.get(Item, 0) is not None and session.get(Item, 30) is None
        session.execute(upsert.on_conflict_do_nothing(index_elements=[Item.id]))
        session.commit()
        assert [session.get(Item, key).name for key in (3, 30)] == ["third", "new"]
    base.metadata.drop_all(engine)
    engine.dispose()


@test
def sqlalchemy_lists_names():
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(""), use_native_hstore=False)
    with connect() as c:
        name = table(c, "names", "id integer PRIMARY KEY")
        c.execute(f"CREATE MATERIALIZED VIEW {name}_stored AS SELECT id FROM {name}")
        c.execute(f"CREATE VIEW {name}_view AS SELECT id FROM {name}")
        try:
            inspector = sqlalchemy.inspect(engine)
            assert "public" in inspector.get_schema_names()
            assert name in inspector.get_table_names() and f"{name}_view" in inspector.get_view_names()
            assert f"{name}_stored" in inspector.get_materialized_view_names()
            assert inspector.has_table(name) and inspector.has_table(f"{name}_stored") and not inspector.has_table(f"{name}_none")
            assert f"SELECT id FROM {name}" in inspector.get_view_definition(f"{name}_view")
            assert inspector.get_foreign_keys(name) == [] and inspector.get_check_constraints(name) == []
        finally:
            c.execute(f"DROP VIEW {name}_view")
            c.execute(f"DROP MATERIALIZED VIEW {name}_stored")
    engine.dispose()


@test
def rows_are_streamed_one_by_one():
    with connect() as c:
        name = table(c, "stream", "id integer PRIMARY KEY")
        c.execute(f"INSERT INTO {name} VALUES " + ", ".join(f"({i})" for i in range(10_000)))
        with c.cursor() as cursor:
            assert sum(row[0] for row in cursor.stream(f"SELECT id FROM {name}")) == sum(range(10_000))


@test
def server_side_cursors_work_or_are_refused_cleanly():
    with connect(autocommit=False) as c:
        try:
            with c.cursor("cur") as cursor:
                cursor.execute("SELECT 1 UNION ALL SELECT 2")
                assert sorted(r[0] for r in cursor.fetchall()) == [1, 2]
        except psycopg.Error as error:
            assert error.sqlstate in ("0A000", "42601"), error
            c.rollback()
        assert c.execute("SELECT 1", prepare=False).fetchone() == (1,)


@test
def copy_works_or_is_refused_cleanly():
    with connect() as c:
        name = table(c, "copy", "id integer PRIMARY KEY")
        try:
            with c.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                copy.write_row((1,))
        except psycopg.Error as error:
            assert error.sqlstate in ("0A000", "42601"), error
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def running_statements_are_cancelled():
    with connect() as c:
        name = table(c, "cancel", "id integer PRIMARY KEY")
        c.execute(f"INSERT INTO {name} VALUES " + ", ".join(f"({i})" for i in range(2000)))
        done = threading.Event()

        def cancel():
            # The statement may not have begun at the first attempt.
            while not done.wait(0.1):
                c.cancel()

        thread = threading.Thread(target=cancel)
        started = time.monotonic()
        thread.start()
        try:
            join = ", ".join(f"{name} t{i}" for i in range(4))
            condition = " AND ".join(f"t{i}.id + t{i + 1}.id < -1" for i in range(3))
            raises("57014", lambda: c.execute(f"SELECT count(*) FROM {join} WHERE {condition} OR t0.id + t3.id < -2"))
        finally:
            done.set()
            thread.join()
        assert time.monotonic() - started < 10, "the cancel took over 10 s"
        assert c.execute("SELECT 1").fetchone() == (1,)


@test
def settings_are_reported_when_they_change():
    with connect() as c:
        c.execute("SET application_name = 'other'")
        assert c.info.parameter_status("application_name") == "other"
        c.execute("SET TimeZone = 'UTC'")
        assert c.info.parameter_status("TimeZone") == "UTC"


@test
def notices_reach_the_client():
    with connect() as c:
        notices = []
        c.add_notice_handler(lambda diagnostic: notices.append((diagnostic.severity, diagnostic.message_primary)))
        c.execute(f"DROP TABLE IF EXISTS {PREFIX}_absent")
        assert len(notices) == 1 and notices[0][0] == "NOTICE" and f"{PREFIX}_absent" in notices[0][1], notices


@test
def psql_runs_scripts_and_stops_on_errors():
    psql = shutil.which("psql")
    if psql is None:
        print("  psql is not installed: not tested")
        return

    def run(*arguments):
        return subprocess.run([psql, "-X", "-At", *arguments], capture_output=True, text=True, timeout=60)

    result = run("-c", "SELECT 1, NULL, 'x'")
    assert (result.returncode, result.stdout, result.stderr) == (0, "1||x\n", ""), result
    result = run("-c", f"DROP TABLE IF EXISTS {PREFIX}_absent")
    assert result.returncode == 0 and "NOTICE" in result.stderr, result
    result = run("-v", "ON_ERROR_STOP=1", "-c", "SELECT nope")
    assert result.returncode == 1 and "LINE 1: SELECT nope\n               ^" in result.stderr, result


def psql_command(command, wanted):
    def run():
        psql = shutil.which("psql")
        if psql is None:
            print("  psql is not installed: not tested")
            return
        with connect() as c:
            name = table(c, "meta" + uuid.uuid4().hex[:4], "id integer, name varchar, PRIMARY KEY (id, name)")
        result = subprocess.run([psql, "-X", "-c", command.replace("NAME", name)], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and "ERROR" not in result.stderr, result.stderr
        missing = [text for text in wanted if text.replace("NAME", name) not in result.stdout]
        assert not missing, f"{missing} not in: {result.stdout}"

    run.__name__ = f"psql {command}"
    TESTS.append(run)


psql_command("\\d", ["List of relations", "NAME"])
psql_command("\\d NAME", ["integer", "character varying", "not null", "PRIMARY KEY, btree (id, name)"])
psql_command("\\d+ NAME", ["integer"])
psql_command("\\dt", ["NAME"])
for meta in ("\\dm", "\\dv", "\\di", "\\df", "\\dT", "\\conninfo"):
    psql_command(meta, [])
psql_command("\\l", ["List of databases"])
psql_command("\\dn", ["List of schemas", "public"])
psql_command("\\du", ["List of roles"])


def clean():
    with connect() as c:
        names = c.execute("SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r'").fetchall()
        for (name,) in names:
            if name.startswith(PREFIX):
                c.execute(f"DROP TABLE IF EXISTS {name}")


def main():
    passed = failed = 0
    for function in TESTS:
        try:
            function()
            passed += 1
        except Exception as error:  # noqa: BLE001: a broken test must not stop the others
            failed += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAILED {function.__name__}: {type(error).__name__} (line {frame.lineno}): {error}")
    try:
        clean()
    except psycopg.Error as error:
        print(f"tables {PREFIX}_* are left: {error}")
    print(f"{passed} passed, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
