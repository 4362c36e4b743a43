"""Tables that change under a sink, for Scripts/test-lake-readers: rows deleted in formats 2 and 3, evolved schemas; and folders."""
import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import DecimalType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from lake_sinks import NO_TIME
from lake_values import by_millrace

GOODS = Schema(
    NestedField(1, "region", StringType(), required=True), NestedField(2, "id", LongType(), required=True),
    NestedField(3, "name", StringType()), NestedField(4, "price", DecimalType(10, 2)), NestedField(5, "at", TimestamptzType()),
    identifier_field_ids=[1, 2])


def play_deletes(checks, compare, sinks, random):
    """Upserts whose rows change in three rounds, so that data files have delete files of several commits."""
    connection = sinks.connection
    connection.execute(
        "CREATE TABLE goods (region varchar, id bigint, name varchar, price numeric(10,2), at timestamptz, PRIMARY KEY (region, id))")
    regions = ["north", "süd", "east/west", ""]
    keys = [(region, number) for region in regions for number in range(100)]

    def put(chosen, label):
        moment = "'1969-12-31 12:00:00+00'::timestamptz"
        values = [
            f"('{region}', {number}, '{label} {number}', {number * 1.25:.2f}, {moment} + INTERVAL '{number} hours')"
            for region, number in chosen]
        connection.execute(f"INSERT INTO goods VALUES {', '.join(values)}")

    put(keys, "first")
    spec = PartitionSpec(PartitionField(2, 1000, BucketTransform(2), "bucket"))
    for name, version, partitions in [("three", 3, PartitionSpec()), ("three_parts", 3, spec)]:
        sinks.lake.catalog.create_table(f"made.{name}", GOODS, partition_spec=partitions, properties={"format-version": str(version)})
    sinks.sink("goods", "two", "upsert")
    sinks.sink("goods", "two_parts", "upsert", ", partition_by = 'bucket(2,id), region'")
    sinks.sink("goods", "three", "upsert")
    sinks.sink("goods", "three_parts", "upsert")
    checks.check(not sinks.settle(), "upserts are through")
    for step in range(3):
        put(random.sample(keys, 25), f"round {step}")
        for region, number in random.sample(keys, 15):
            connection.execute("DELETE FROM goods WHERE region = %s AND id = %s", (region, number))
        checks.check(not sinks.settle(), f"upserts are through round {step}")
    for table, version in [("two", 2), ("two_parts", 2), ("three", 3), ("three_parts", 3)]:
        formats = connection.execute(f"SELECT DISTINCT file_format FROM dev.made.{table}.files WHERE content = 1").fetchall()
        expected = [("PARQUET",)] if version == 2 else [("PUFFIN",)]
        found = sinks.lake.table(f"made.{table}").format_version
        checks.check(formats == expected and found == version, f"made.{table}: format {version} has deletes", formats)
        compare.table(f"made.{table}", "SELECT * FROM goods", files_alone=False)


def play_evolution(checks, compare, sinks):
    """PyIceberg changes the table between the sink's commits."""
    connection, lake = sinks.connection, sinks.lake
    connection.execute("CREATE TABLE growing (id bigint PRIMARY KEY, whole integer, ratio real, price numeric(9,2), word varchar)")
    values = iter(range(1000))

    def insert(count=5):
        rows = [f"({n}, {n * 1000 - 2000}, {n} / 8.0, {n * 3.25}, {'NULL' if n % 4 == 3 else f'''{chr(39)}w {n}{chr(39)}'''})"
                for n, _ in zip(values, range(count))]
        connection.execute(f"INSERT INTO growing VALUES {', '.join(rows)}")
        checks.check(not sinks.settle(), "the sink goes on", str(sinks.settle())[:300])

    sinks.sink("growing", "growing")
    insert()
    with lake.table("made.growing").update_schema() as update:
        update.add_column("note", StringType())
        update.update_column("whole", LongType())
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(18, 2))
    insert()
    table = lake.table("made.growing")
    theirs = {
        "id": [2000, 2001], "whole": [2**40, None], "ratio": [1e300, None], "price": [None, None], "word": ["theirs", None],
        "note": ["ä", None]}
    table.append(pa.Table.from_pydict(theirs, schema=table.schema().as_arrow()))
    with table.update_schema() as update:
        update.rename_column("note", "remark")
        update.move_first("word")
    insert()
    with lake.table("made.growing").update_spec() as update:
        update.add_field("id", BucketTransform(2), "id_bucket")
    insert()
    with lake.table("made.growing").update_spec() as update:
        update.remove_field("id_bucket")
        update.add_identity("word")
    insert()
    theirs = "UNION ALL SELECT 2000, 1099511627776, 1e300, NULL, 'theirs', 'ä' UNION ALL SELECT 2001, NULL, NULL, NULL, NULL, NULL"
    columns = "id, whole::bigint AS whole, ratio::double precision AS ratio, price, word, NULL::varchar AS remark"
    query = f"SELECT {columns} FROM growing {theirs}"
    compare.table("made.growing", query, {"pyarrow": "its files have several schemas"})


def folder_readers(path, spark, hive):
    """Readers of a folder of Parquet; columns of directories' names have the types that they are told, or find by themselves."""
    types = ", hive_types = {'day': DATE, 'word': VARCHAR}" if hive else ""
    schema = {"day": polars.Date, "word": polars.String} if hive else None
    partitioning = ds.HivePartitioning(pa.schema([("day", pa.date32()), ("word", pa.string())]))
    files = f"{path}/**/*.parquet"
    readers = {
        "pyarrow": lambda _: ds.dataset(path, format="parquet", partitioning=partitioning).to_table(),
        "DuckDB": lambda _: duckdb.sql(
            f"FROM read_parquet('{files}', hive_partitioning = {str(hive).lower()}{types})").to_arrow_table(),
        "polars": lambda _: polars.scan_parquet(files, hive_partitioning=hive, hive_schema=schema).collect().to_arrow()}
    if spark:
        readers["Spark"] = lambda _: spark.query(f"SELECT * FROM parquet.`{path}`")
    return readers


def play_folders(compare, sinks, directory):
    """Every type in files, and files in directories of Hive's kind. An empty text has no directory there, as it is NULL's."""
    connection = sinks.connection
    connection.execute("CREATE VIEW filed AS SELECT * FROM parts_timeless WHERE word IS NULL OR word <> ''")
    relations = {"every_type": "", "without_time": "", "filed": ", partition_by = 'day, word'"}
    for relation, options in relations.items():
        connection.execute(
            f"CREATE SINK files_of_{relation} FROM {relation} WITH (connector = 'fs', type = 'append-only', force_append_only = 'true', "
            f"path = '{directory}/{relation}'{options}) FORMAT PLAIN ENCODE PARQUET")
    compare.checks.check(not sinks.settle(), "sinks into folders are through", str(sinks.settle())[:300])
    for relation in relations:
        path = f"{directory}/{relation}"
        columns = [column.name for column in connection.execute(f"SELECT * FROM {relation} LIMIT 0").description]
        query = f"SELECT {', '.join(columns)} FROM {relation}".replace("span", "span::varchar AS span")
        expected = by_millrace(connection, query)
        wrong = compare.difference(query, by_millrace(connection, f"SELECT * FROM read_parquet('{path}')"))
        compare.checks.check(not wrong, f"folder {relation}: {len(expected.rows)} rows by read_parquet", wrong)
        unable = NO_TIME if "clock" in columns else {}
        compare.hold(f"folder {relation}", expected, folder_readers(path, compare.spark, bool(relations[relation])), unable)
