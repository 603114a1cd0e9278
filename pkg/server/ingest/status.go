// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// How long agents are asked to wait.
const (
	retryFull = 30 * time.Second // nothing but retention or a person makes room
	retrySoon = time.Second
)

// retry makes a status that carries google.rpc.RetryInfo.
func retry(code codes.Code, after time.Duration, format string, args ...any) error {
	st := status.New(code, fmt.Sprintf(format, args...))
	if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
		st = with
	}
	return st.Err()
}

var errClosing = retry(codes.Unavailable, retrySoon, "this server is stopping")

// ended is a stream's status after its receive loop has ended with err.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
