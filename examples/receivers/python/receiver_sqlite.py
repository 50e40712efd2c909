"""A webhook receiver with one effect for each event, however often the event comes. See ../README.md."""

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from flask import Flask, Response, request
from standardwebhooks import Webhook, WebhookVerificationError
from werkzeug.serving import make_server

CLAIM = {"on_expired": "retake", "lease_ms": int(os.environ.get("LEASE_MS", 30_000))}  # more than it takes
LATER, KEY_BYTES_MAX = {"retry-after": 1}, 321  # the ledger's table takes no longer key
SQL = {path.stem: path.read_text() for path in Path(os.environ["LEDGER_SQL"]).glob("*.sql")}
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 256 * 1024


def charge(connection, key, event):
    """The effect. It writes through the transaction that completes the entry; duplicates get its answer."""
    insert = "INSERT INTO charges (event_key, amount) VALUES (?, ?) RETURNING id"
    row = connection.execute(insert, [key, event["amount"]]).fetchall()[0]
    body = b'{"charge":%d}' % row["id"]
    return {"result_status": 200, "result_type": "application/json", "result_bytes": body}


def once(connection, key, fingerprint, event):
    claim = CLAIM | {"event_key": key, "claim_id": os.urandom(16).hex(), "fingerprint": fingerprint}
    # Fetched to the end: a statement that still has rows keeps its transaction open.
    entry = connection.execute(SQL["claim"], claim).fetchall()[0]
    path, grant = entry["path"], {"event_key": key, "fence": entry["fence"]}

    def answer(outcome, result_status, result_type=None, result_bytes=None, **headers):
        headers["posthaste-ledger"] = f"path={path}, outcome={outcome}, attempt={entry['attempts']}"
        return Response(result_bytes, result_status or 200, headers, content_type=result_type)

    if path == "key_reused":
        return Response(status=422)
    if path == "in_progress_elsewhere":  # never 2xx: the other may fail yet, and has the rest of its lease
        return answer("none", 409, **{"retry-after": -(-(entry["retry_after_ms"] or 1) // 1000)})
    if path == "duplicate_done":
        return answer(entry["outcome"], entry["result_status"], entry["result_type"], entry["result_bytes"])
    reported = False
    try:
        connection.execute("BEGIN IMMEDIATE")
        result = charge(connection, key, event)
        reported = True
        counted = connection.execute(SQL["complete"], grant | {"outcome": "committed"} | result).fetchall()
        connection.execute("COMMIT" if counted else "ROLLBACK")  # not counted: another was granted the key
        return answer("committed", **result) if counted else answer("none", 409, **LATER)
    except Exception as error:
        if reported:  # it is not known whether it was committed: say nothing, and let the lease end
            raise
        connection.rollback()
        report = grant | {"class": type(error).__name__, "message": str(error)}
        connection.execute(SQL["fail"], report).fetchall()
        return answer("failed", 503, **LATER)


@app.post("/")
def receive():
    body, key = request.get_data(), request.headers.get("webhook-id", "")  # signed, so nobody can choose it
    try:
        event = WEBHOOK.verify(body, dict(request.headers))  # the raw body, before anybody parses it
        if len(key.encode()) > KEY_BYTES_MAX or type(amount := event["amount"]) is not int or amount >> 63:
            raise ValueError
    except Exception as error:
        return Response(status=401 if key and isinstance(error, WebhookVerificationError) else 400)
    with closing(sqlite3.connect(os.environ["DATABASE_URL"], timeout=10, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        return once(connection, key, hashlib.sha256(body).hexdigest(), event)


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ.get("PORT", 8080)), app, threaded=True)
    print(f"listening on 127.0.0.1:{server.port}", flush=True)
    server.serve_forever()
