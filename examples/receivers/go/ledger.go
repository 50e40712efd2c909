package main

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
)

type ledger struct {
	db                    *sql.DB
	claim, complete, fail string
	leaseMs               int // longer than the effect takes
}

// answer is what the ledger keeps for duplicates; told, the header posthaste-ledger, is made each time.
type answer struct {
	status       int
	kind         string
	body         []byte
	told         string
	retryAfterMs int64 // the rest of another's lease
}

func openLedger(db *sql.DB, folder string, leaseMs int) *ledger {
	statement := func(name string) string { return string(must(os.ReadFile(folder + "/" + name + ".sql"))) }
	return &ledger{db, statement("claim"), statement("complete"), statement("fail"), leaseMs}
}

// once claims the key, then runs the effect and completes the entry in one transaction. After an error nobody knows
// whether that was committed: nothing is said, and the lease ends by itself.
func (l *ledger) once(key string, body []byte, effect func(*sql.Tx) (answer, error)) (answer, error) {
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return answer{}, err
	}
	var path, fingerprint = "", fmt.Sprintf("%x", sha256.Sum256(body))
	var attempts, fence, status, retryAfterMs sql.NullInt64
	var previous, lockedUntil, outcome, kind sql.NullString
	var stored []byte
	claimed := l.db.QueryRow(l.claim, key, fmt.Sprintf("%x", token), l.leaseMs, fingerprint, "retake")
	if err := claimed.Scan(&path, &fence, &attempts, &previous, &lockedUntil, &retryAfterMs,
		&outcome, &stored, &kind, &status); err != nil {
		return answer{}, err
	}
	told := func(outcome string) string {
		return fmt.Sprintf("path=%s, outcome=%s, attempt=%d", path, outcome, attempts.Int64)
	}
	switch path {
	case "key_reused":
		return answer{status: 422}, nil
	case "in_progress_elsewhere":
		// Never 2xx: the other may fail yet.
		return answer{status: 409, told: told("none"), retryAfterMs: retryAfterMs.Int64}, nil
	case "duplicate_done":
		return answer{int(status.Int64), kind.String, stored, told(outcome.String), 0}, nil
	}
	tx, err := l.db.Begin()
	if err != nil {
		return answer{}, err
	}
	defer tx.Rollback() // does nothing after a commit
	result, err := effect(tx)
	if err != nil {
		tx.Rollback()
		_, failed := l.db.Exec(l.fail, key, fence, "effect", err.Error())
		return answer{status: 503, told: told("failed")}, failed
	}
	counted, err := tx.Exec(l.complete, key, fence, "committed", result.body, result.kind, result.status)
	if err != nil {
		return answer{}, err
	}
	if rows, _ := counted.RowsAffected(); rows == 0 { // another was granted the key
		return answer{status: 409, told: told("none")}, nil
	}
	result.told = told("committed")
	return result, tx.Commit()
}
