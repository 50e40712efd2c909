package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

func (a answer) write(w http.ResponseWriter) {
	headers := map[string]string{"content-type": a.kind, "posthaste-ledger": a.told}
	if a.status == http.StatusConflict || a.status == http.StatusServiceUnavailable {
		headers["retry-after"] = strconv.FormatInt(1+(a.retryAfterMs-1)/1000, 10) // rounded up, at least 1
	}
	for name, value := range headers {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	if a.status == 0 { // kept by a program that knew no status
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

// decodeSecret reads a secret of Standard Webhooks, whsec_ and base64.
func decodeSecret(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
}

// genuine says whether the request carries a fresh signature of these very bytes by this secret.
func genuine(secret []byte, headers http.Header, body []byte) bool {
	sent, err := strconv.ParseInt(headers.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(headers.Get("webhook-id") + "." + headers.Get("webhook-timestamp") + "."))
	mac.Write(body)
	for _, signature := range strings.Fields(headers.Get("webhook-signature")) {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
		if err == nil && hmac.Equal(given, mac.Sum(nil)) {
			return true
		}
	}
	return false
}
