// SPDX-License-Identifier: MIT

// filch-bench-idle-go <name> <threads>: a server with mostly idle connections. One goroutine per
// connection waits in Read. Prints READY, and serves the abstract Unix address <name>.
//
// As in filch, a connection is a bare descriptor: os.NewFile hands a non-blocking descriptor to the
// netpoller, without a net.Conn around it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "filch-bench-idle-go:", err)
	os.Exit(1)
}

func serve(fd int) {
	file := os.NewFile(uintptr(fd), "")
	defer file.Close()
	bytes := make([]byte, 16)
	bytes[0] = '!'
	for got := 1; ; {
		if _, err := file.Write(bytes[:got]); err != nil {
			return
		}
		var err error
		if got, err = file.Read(bytes); err != nil {
			return
		}
	}
}

func main() {
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	threads, _ := strconv.Atoi(os.Args[2])
	runtime.GOMAXPROCS(threads)
	listener, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Bind(listener, &syscall.SockaddrUnix{Name: "@" + os.Args[1]})
	}
	if err == nil {
		err = syscall.Listen(listener, 4096)
	}
	if err != nil {
		fail(err)
	}
	fmt.Println("READY")
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			fail(err)
		}
		go serve(fd)
	}
}
