// Command upstream is what the gateway follows in the browser scenarios: a gRPC
// server with watches of any size, which changes them at any rate, and which can
// be stopped and restarted with all its data.
//
// It prints one line of JSON with its two addresses, takes orders over HTTP (see
// control), and ends when its standard input does: its parent is gone.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	server, err := newServer()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, control(server))
	addresses := map[string]string{"control": listener.Addr().String(), "grpc": server.address}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
