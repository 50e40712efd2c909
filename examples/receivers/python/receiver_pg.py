"""A webhook receiver with one effect for each event, however often the event comes. See ../README.md."""

import hashlib
import os
from pathlib import Path

import psycopg
from flask import Flask, Response, request
from psycopg_pool import ConnectionPool
from standardwebhooks import Webhook, WebhookVerificationError
from werkzeug.serving import make_server

LEASE_MS = int(os.environ.get("LEASE_MS", 30_000))  # longer than the effect takes
LATER, KEY_BYTES_MAX = {"retry-after": 1}, 321  # the ledger's table takes no longer key
SQL = {path.stem: path.read_text() for path in Path(os.environ["LEDGER_SQL"]).glob("*.sql")}
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
# A raw cursor takes $1, $2, as the files have them.
OPTIONS = {"autocommit": True, "cursor_factory": psycopg.RawCursor, "row_factory": psycopg.rows.dict_row}
POOL = ConnectionPool(os.environ["DATABASE_URL"], kwargs=OPTIONS, max_size=10, open=True)
app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 256 * 1024


def charge(connection, key, event):
    """The effect. It writes through the transaction that completes the entry; duplicates get its answer."""
    insert = "INSERT INTO charges (event_key, amount) VALUES ($1, $2) RETURNING id"
    row = connection.execute(insert, [key, event["amount"]]).fetchone()
    return b'{"charge":%d}' % row["id"], 200, "application/json"


def once(connection, key, fingerprint, event):
    claim = [key, os.urandom(16).hex(), LEASE_MS, fingerprint, "retake"]
    entry = connection.execute(SQL["claim"], claim).fetchone()
    path, fence = entry["path"], entry["fence"]

    def answer(outcome, content, status, kind=None, **headers):
        told = f"path={path}, outcome={outcome}, attempt={entry['attempts']}"
        return Response(content, status or 200, {"posthaste-ledger": told, **headers}, content_type=kind)

    if path == "key_reused":
        return Response(status=422)
    if path == "in_progress_elsewhere":  # never 2xx: the other may fail yet, and has the rest of its lease
        return answer("none", None, 409, **{"retry-after": -(-(entry["retry_after_ms"] or 1) // 1000)})
    if path == "duplicate_done":
        return answer(entry["outcome"], entry["result_bytes"], entry["result_status"], entry["result_type"])
    reported = False
    try:
        with connection.transaction():
            content, status, kind = charge(connection, key, event)
            reported = True
            report = [key, fence, "committed", content, kind, status]
            counted = connection.execute(SQL["complete"], report).fetchone()
            if not counted:  # another was granted the key
                raise psycopg.Rollback
        return answer("committed", content, status, kind) if counted else answer("none", None, 409, **LATER)
    except Exception as error:
        if reported:  # nobody knows whether it was committed: say nothing, and let the lease end
            raise
        connection.execute(SQL["fail"], [key, fence, type(error).__name__, str(error)])
        return answer("failed", None, 503, **LATER)


@app.post("/")
def receive():
    body, key = request.get_data(), request.headers.get("webhook-id", "")  # signed, so nobody can choose it
    try:
        event = WEBHOOK.verify(body, dict(request.headers))  # the raw body, before anybody parses it
        if len(key.encode()) > KEY_BYTES_MAX or type(amount := event["amount"]) is not int or amount >> 63:
            raise ValueError
    except Exception as error:
        return Response(status=401 if key and isinstance(error, WebhookVerificationError) else 400)
    with POOL.connection() as connection:
        return once(connection, key, hashlib.sha256(body).hexdigest(), event)


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ.get("PORT", 8080)), app, threaded=True)
    print(f"listening on 127.0.0.1:{server.port}", flush=True)
    server.serve_forever()
