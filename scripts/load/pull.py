"""Four workers that consume and acknowledge in batches of 100 for six seconds. Arguments: address, API key."""
import http.client
import json
import sys
import threading
import time

address, key = sys.argv[1:]
headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
counts = [0] * 4


def call(connection, path, body):
    connection.request("POST", path, json.dumps(body), headers)
    return json.loads(connection.getresponse().read())


def work(number):
    connection = http.client.HTTPConnection(address)
    end = time.monotonic() + 6
    while time.monotonic() < end:
        jobs = call(connection, "/v1/queue/consume", {"queue": "carts", "max": 100, "worker": f"w-{number}"})["jobs"]
        if not jobs:
            return
        reports = [{"job": job["id"], "fence": job["fence"], "outcome": "committed"} for job in jobs]
        call(connection, "/v1/queue/ack", {"jobs": reports})
        counts[number] += len(jobs)


begun = time.monotonic()
workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(f"pull, batches of 100: {sum(counts) / (time.monotonic() - begun):,.0f} jobs/s")
