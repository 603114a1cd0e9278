// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

// childVariable makes the test binary a server on the folder that it names.
const childVariable = "DIAGON_TEST_SERVER_DATA"

// child serves until it is killed, and says on standard output where.
func child() {
	cfg := DefaultConfig()
	cfg.HTTP, cfg.GRPC, cfg.Data, cfg.Spare = "127.0.0.1:0", "127.0.0.1:0", os.Getenv(childVariable), 0
	s, err := Start(context.Background(), cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("grpc", s.GRPCAddr())
	select {}
}
