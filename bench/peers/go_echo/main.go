// SPDX-License-Identifier: MIT

// filch-bench-echo-go <threads>: an echo server, one goroutine per connection. Prints PORT and a
// number.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 4096)
	for {
		count, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:count]); err != nil {
			return
		}
	}
}

func main() {
	threads := 1
	if len(os.Args) > 1 {
		threads, _ = strconv.Atoi(os.Args[1])
	}
	runtime.GOMAXPROCS(threads)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("PORT", listener.Addr().(*net.TCPAddr).Port)
	for {
		if connection, err := listener.Accept(); err == nil {
			go serve(connection)
		}
	}
}
