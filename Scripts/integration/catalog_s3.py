"""A warehouse in S3 whose keys clients are lent, for Scripts/test-catalog."""
import pathlib
import subprocess

import pyarrow as pa
import pyarrow.fs

SERVER = pathlib.Path(__file__).resolve().parents[1] / "real/seaweedfs"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def play_s3(checks, service, directory):
    try:
        started = subprocess.run([SERVER, "start", directory], text=True, capture_output=True, timeout=200)
        if started.returncode == 77:
            print("  SKIPPED  a warehouse in S3: its server cannot be fetched", flush=True)
            return
        if checks.check(started.returncode == 0, "an S3 server starts", started.stderr):
            play(checks, service, started.stdout.split()[0])
    finally:
        subprocess.run([SERVER, "stop", directory], timeout=60)


def play(checks, service, endpoint):
    form = {"grant_type": "client_credentials", "client_id": "root", "client_secret": "secret"}
    token = service.call("POST", "/api/catalog/v1/oauth/tokens", form=form)[1]["access_token"]
    keys = {"s3.access-key-id": "millrace", "s3.secret-access-key": "millrace-secret"}
    properties = {"default-base-location": "s3://millrace/warehouse", "s3.endpoint": endpoint, "s3.path-style-access": "true", "s3.region": "us-east-1"}
    body = {"name": "cloud", "properties": properties | keys, "storageConfigInfo": {"storageType": "S3", "roleArn": "arn:aws:iam::1:role/x"}}
    status, answer = service.call("POST", "/api/management/v1/catalogs", body, headers={"authorization": f"Bearer {token}"})
    checks.check(status == 201 and "s3.secret-access-key" not in answer["properties"], "a catalog in S3 is made, and does not show its keys", str(answer))
    catalog = service.client("cloud")
    catalog.create_namespace("payments_db")
    table = catalog.create_table("payments_db.payment_charges", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    frame = service.client("cloud").load_table("payments_db.payment_charges").scan().to_pandas()
    checks.check(len(frame) == 6, "a client reads and writes in S3 with the keys that it is lent")
    files = pyarrow.fs.S3FileSystem(
        access_key="millrace", secret_key="millrace-secret", endpoint_override=endpoint, region="us-east-1")
    found = files.get_file_info(pyarrow.fs.FileSelector("millrace/warehouse/payments_db/payment_charges"))
    checks.check(sorted(info.base_name for info in found) == ["data", "metadata"], "the bucket has the table's data and metadata", str(found))
    catalog.purge_table("payments_db.payment_charges")
    left = [info.path for info in files.get_file_info(pyarrow.fs.FileSelector("millrace/warehouse", recursive=True, allow_not_found=True)) if info.is_file]
    checks.check(not left, "a purged table leaves no objects", str(left))
