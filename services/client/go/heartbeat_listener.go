package muster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// listener sends heartbeats to a run's listener for legacy clients, until one fails.
func (h *Heartbeats) listener(ctx context.Context, wait *reconnect) error {
	for {
		interval, err := h.client.legacy.health(ctx, h)
		if err != nil {
			return err
		}
		wait.reset()
		h.note(nil)
		if err := pause(ctx, spread(interval)); err != nil {
			return err
		}
	}
}

// health sends one heartbeat, and returns the time until the next.
func (l *listener) health(ctx context.Context, h *Heartbeats) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.path("health", h.client.key(Key{})), nil)
	if err != nil {
		return 0, err
	}
	response, err := l.http.Do(request)
	if err != nil {
		return 0, &Error{Code: "UNAVAILABLE", Message: err.Error()}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed: // a version without heartbeats
		return 0, &Error{Code: "UNIMPLEMENTED", Message: fmt.Sprintf("%s: %s", request.URL, response.Status)}
	default:
		return 0, answerOf(request, response, text)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		h.setServerTime(date)
	}
	var answer struct {
		Seconds float64 `json:"interval_seconds"`
	}
	if json.Unmarshal(text, &answer) != nil || !(answer.Seconds > 0) || answer.Seconds > longestInterval.Seconds() {
		return firstInterval, nil
	}
	return max(time.Duration(answer.Seconds*float64(time.Second)), shortestInterval), nil
}
