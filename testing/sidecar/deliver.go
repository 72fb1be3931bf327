package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	pollEvery     = time.Second
	attempts      = 3
	betweenTries  = time.Second
	graceAfterEnd = time.Minute
)

// waitForDone polls the done file once a second and returns the path in it. The file must still exist after the delay.
// When stopped, it polls for another minute.
func waitForDone(stop context.Context, c *config) (string, error) {
	done := filepath.Join(c.resultsDir, "done")
	ended := make(<-chan time.Time)
	stopping := stop.Done()
	for tick := time.NewTicker(pollEvery); ; {
		select {
		case <-tick.C:
		case <-stopping:
			stopping, ended = nil, time.After(graceAfterEnd)
			continue
		case <-ended:
			return "", nil
		}
		if _, err := os.Stat(done); err != nil {
			continue
		}
		time.Sleep(c.doneFileDelay)
		text, err := os.ReadFile(done)
		if os.IsNotExist(err) {
			continue
		}
		return strings.TrimSpace(string(text)), err
	}
}

func deliver(c *config, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if file, err = packFolder(file); err != nil {
			return err
		}
	}
	body, err := os.ReadFile(file) // completely: a retry needs it
	if err != nil {
		return err
	}
	header := http.Header{}
	header.Set("Content-Type", contentType(file)) // sent even if it is empty
	header.Set("Content-Disposition", "attachment;filename="+filepath.Base(file))
	response, err := send(c.client, http.MethodPut, c.resultURL, header, body, attempts)
	if err != nil {
		return err
	}
	switch response.status {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		log.Printf("the aggregator has it already: %s", response.body)
		return nil
	}
	return fmt.Errorf("PUT %s: status %d: %s", c.resultURL, response.status, response.body)
}

type answer struct {
	status int
	body   []byte
}

// send makes up to `tries` requests a second apart: it retries transport errors and 5xx only.
func send(client *http.Client, method, url string, header http.Header, body []byte, tries int) (*answer, error) {
	for try := 1; ; try++ {
		response, err := sendOnce(client, method, url, header, body)
		if err == nil && response.status < 500 || try == tries {
			return response, err
		}
		log.Printf("try %d: %v %v", try, response, err)
		time.Sleep(betweenTries)
	}
}

func sendOnce(client *http.Client, method, url string, header http.Header, body []byte) (*answer, error) {
	// The NopCloser hides the length: the body is chunked. The reader writes everything in one call: one chunk, however
	// large.
	request, err := http.NewRequest(method, url, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, err
	}
	request.ContentLength = -1
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return &answer{response.StatusCode, text}, err
}

func contentType(file string) string {
	if strings.HasSuffix(file, ".gz") {
		return "application/gzip"
	}
	return mime.TypeByExtension(filepath.Ext(file))
}

// packFolder writes results.tar.gz into the folder, with all its other files.
func packFolder(folder string) (string, error) {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressor)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = archive.Write(text)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	if err := compressor.Close(); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "results.tar.gz")
	return file, os.WriteFile(file, packed.Bytes(), 0o600)
}
