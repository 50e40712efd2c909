// A webhook receiver with one effect for each event, however often the event comes. See ../README.md.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"

	_ "github.com/lib/pq"
)

const bodyBytesMax = 256 * 1024
const keyBytesMax = 321 // what the ledger's table takes

type event struct{ Amount *int64 }

// charge is the effect. It writes through the transaction that completes the entry; duplicates get its answer.
func charge(tx *sql.Tx, key string, order event) (answer, error) {
	var id int64
	insert := "INSERT INTO charges (event_key, amount) VALUES ($1, $2) RETURNING id"
	err := tx.QueryRow(insert, key, *order.Amount).Scan(&id)
	return answer{status: 200, kind: "application/json", body: []byte(fmt.Sprintf(`{"charge":%d}`, id))}, err
}

func receive(events *ledger, secret []byte, r *http.Request) answer {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytesMax+1))
	key := r.Header.Get("webhook-id") // signed, so nobody can choose it
	var order event
	switch {
	case err != nil || key == "" || len(key) > keyBytesMax:
		return answer{status: 400}
	case len(body) > bodyBytesMax:
		return answer{status: 413}
	case !genuine(secret, r.Header, body): // the raw body, before anybody parses it
		return answer{status: 401}
	case json.Unmarshal(body, &order) != nil || order.Amount == nil:
		return answer{status: 400}
	}
	result, err := events.once(key, body, func(tx *sql.Tx) (answer, error) { return charge(tx, key, order) })
	if err != nil {
		log.Print(err)
		return answer{status: 500}
	}
	return result
}

func main() {
	db := must(sql.Open("postgres", os.Getenv("DATABASE_URL")))
	db.SetMaxOpenConns(10)
	events := openLedger(db, os.Getenv("LEDGER_SQL"), must(strconv.Atoi(environment("LEASE_MS", "30000"))))
	secret := must(decodeSecret(os.Getenv("WEBHOOK_SECRET")))
	listener := must(net.Listen("tcp", "127.0.0.1:"+environment("PORT", "8080")))
	fmt.Println("listening on", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		receive(events, secret, r).write(w)
	})))
}

func environment(name, otherwise string) string {
	if value, known := os.LookupEnv(name); known {
		return value
	}
	return otherwise
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
