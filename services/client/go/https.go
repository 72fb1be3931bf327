package muster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"muster.example/services/client/go/reasons"
)

// listener delivers to a run's listener for legacy clients: plain HTTPS. Safe for concurrent use.
type listener struct {
	base string
	http *http.Client
}

func newListener(c *Config) (*listener, error) {
	address, err := url.Parse(c.AggregatorURL)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("aggregator_url: %q is not an address", c.AggregatorURL)
	}
	return &listener{
		base: "https://" + address.Host,
		http: &http.Client{
			// A redirected PUT would become a GET, whose 200 would be meaningless.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				TLSClientConfig: &tls.Config{
					MinVersion: tls.VersionTLS12, RootCAs: pool(c.CA), Certificates: []tls.Certificate{leafOnly(c.certificate)},
				},
				TLSHandshakeTimeout: 15 * time.Second, MaxIdleConns: 2, IdleConnTimeout: 30 * time.Second,
				// A gateway holds a PUT for a minute while the aggregator is unreachable, and the commit
				// takes time.
				ResponseHeaderTimeout: commitTimeout,
			},
		},
	}, nil
}

func (l *listener) path(kind string, key Key) string {
	if key.Node == Global {
		return l.base + "/api/v1/" + kind + "/global/" + url.PathEscape(key.Plugin)
	}
	return l.base + "/api/v1/" + kind + "/by-node/" + url.PathEscape(key.Node) + "/" + url.PathEscape(key.Plugin)
}

// submit sends the whole body at each attempt, because legacy listeners do not resume.
func (l *listener) submit(ctx context.Context, d *Delivery, body *os.File, waiting func(*Error)) (*Result, error) {
	size, err := body.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, &BodyError{err}
	}
	from, err := newFileSource(body, size)
	if err != nil {
		return nil, err
	}
	disposition := "attachment;filename=" + strings.Map(printable, d.FileName)
	var content io.ReaderAt = body
	if d.IsError {
		text := make([]byte, size)
		if _, err := body.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, &BodyError{err}
		}
		report, err := json.Marshal(map[string]string{"error": strings.ToValidUTF8(string(text), "?")})
		if err != nil {
			return nil, err
		}
		content, size, disposition = bytes.NewReader(report), int64(len(report)), ""
	}
	return persist(ctx, d.Hold, waiting, func(ctx context.Context) (*Result, bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, l.path("results", d.Key), io.NewSectionReader(content, 0, size))
		if err != nil {
			return nil, false, err
		}
		request.ContentLength = size
		if size == 0 {
			request.Body = http.NoBody
		}
		request.Header.Set("Content-Type", d.MediaType)
		if disposition != "" {
			request.Header.Set("Content-Disposition", disposition)
		}
		if err := l.do(request); err != nil {
			return nil, false, err
		}
		return &Result{Key: d.Key, Size: from.sum.size, SHA256: from.sum.sha256}, true, nil
	}, false)
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '_'
	}
	return r
}

func (l *listener) progress(ctx context.Context, key Key, p Progress) error {
	body, err := json.Marshal(map[string]any{
		"msg": p.Message, "total": p.Total, "completed": p.Completed, "failures": p.Failures, "errors": p.Errors,
		"appendtotals": p.AppendTotals, "appendcompleted": p.AppendCompleted, "appendfailing": p.AppendFailing,
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.path("progress", key), bytes.NewReader(body))
	if err != nil {
		return err
	}
	return l.do(request)
}

// listenerAnswers maps answers of a legacy listener to errors of the API.
var listenerAnswers = map[int]Error{
	http.StatusForbidden: {Code: "PERMISSION_DENIED", Reason: reasons.NotYours},
	http.StatusNotFound:  {Code: "NOT_FOUND", Reason: reasons.PathNotFound},
	http.StatusConflict:  {Code: "ALREADY_EXISTS", Reason: reasons.ResultConflict},
	http.StatusGone:      {Code: "FAILED_PRECONDITION", Reason: reasons.RunSealed},
	http.StatusRequestEntityTooLarge: {Code: "INVALID_ARGUMENT", Reason: reasons.ResultTooLarge,
		NextStep: "Make the result smaller, or raise limits.result_bytes in the configurations of the gateway and the aggregator."},
	http.StatusBadRequest: {Code: "INVALID_ARGUMENT", Reason: reasons.BadRequest},
}

func (l *listener) do(request *http.Request) error {
	response, err := l.http.Do(request)
	if err != nil {
		return &Error{Code: "UNAVAILABLE", Message: err.Error()}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return answerOf(request, response, text)
}

// answerOf converts an answer of a listener to an error of the API.
func answerOf(request *http.Request, response *http.Response, text []byte) error {
	answer, ok := listenerAnswers[response.StatusCode]
	if !ok {
		answer = Error{Code: "UNAVAILABLE"}
		if response.StatusCode < 500 {
			answer = *errUnexpectedAnswer("")
		}
	}
	answer.Message = fmt.Sprintf("%s: %s: %s", request.URL, response.Status, strings.TrimSpace(string(text)))
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		answer.RetryAfter = min(time.Duration(seconds)*time.Second, 10*time.Minute)
	}
	return &answer
}

// spool copies a stream to an unnamed file, so that it can be resent.
func spool(body io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "muster-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := io.Copy(file, body); err != nil {
		return nil, errors.Join(&BodyError{err}, file.Close())
	}
	return file, nil
}
