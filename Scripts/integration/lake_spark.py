"""Spark with Iceberg's runtime over our catalog: a request a line (JSON) on standard input, an answer a line on standard output.

A request has `sql`, and `to` when its answer shall be written there as Parquet files instead of being printed.
"""
import json
import os
import sys

from pyspark.sql import SparkSession

CATALOG = "spark.sql.catalog.lake"
URI = os.environ["MILLRACE_CATALOG_URI"]
SETTINGS = {
    "spark.ui.enabled": "false", "spark.jars": os.environ["MILLRACE_ICEBERG_SPARK_JAR"], "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions", "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog", CATALOG + ".type": "rest", CATALOG + ".uri": URI, CATALOG + ".warehouse": "dev",
    CATALOG + ".credential": "root:secret", CATALOG + ".scope": "PRINCIPAL_ROLE:ALL",
    CATALOG + ".oauth2-server-uri": URI + "/v1/oauth/tokens", CATALOG + ".cache-enabled": "false",
}


def answer(value):
    print(json.dumps(value, default=str), flush=True)


builder = SparkSession.builder.master("local[2]")
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
session.sparkContext.setLogLevel("ERROR")
answer({"rows": []})
for line in sys.stdin:
    request = json.loads(line)
    try:
        frame = session.sql(request["sql"])
        if "to" in request:
            frame.coalesce(1).write.parquet(request["to"])
            answer({"rows": []})
        else:
            answer({"rows": [list(row) for row in frame.collect()]})
    except Exception as error:
        # The last cause is the one that says something.
        text = str(error)
        answer({"error": text[text.rfind("Caused by:"):][:1500] if "Caused by:" in text else text[:1500]})
session.stop()
