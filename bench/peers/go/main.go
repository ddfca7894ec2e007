// SPDX-License-Identifier: MIT

// The works of filch-bench-wait with goroutines: same arguments, same result line.
// ../../wait describes them.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const exitSkip = 77

type figure struct {
	name  string
	value float64
}

func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, "filch-bench-wait-go: "+format+"\n", arguments...)
	os.Exit(1)
}

// The value of "name=value" on the command line, or its default.
func number(name string, otherwise int64) int64 {
	for _, setting := range os.Args[3:] {
		if strings.HasPrefix(setting, name+"=") {
			value, err := strconv.ParseInt(setting[len(name)+1:], 10, 64)
			if err != nil {
				fail("%s must be a number, not '%s'", name, setting[len(name)+1:])
			}
			return value
		}
	}
	return otherwise
}

func elapsed(start time.Time) figure {
	return figure{"ns", float64(time.Since(start).Nanoseconds())}
}

// Two goroutines and two channels: a value goes there and comes back, incremented.
func pingpong() []figure {
	trips, capacity := number("trips", 200000), number("capacity", 0)
	there, back := make(chan int64, capacity), make(chan int64, capacity)
	go func() {
		for value := range there {
			back <- value + 1
		}
		close(back)
	}()
	for i := int64(0); i < trips/10; i++ {
		there <- 0
		<-back
	}

	start := time.Now()
	value := int64(0)
	for i := int64(0); i < trips; i++ {
		there <- value
		value = <-back
	}
	result := elapsed(start)
	close(there)
	<-back
	if value != trips {
		fail("%d trips, not %d", value, trips)
	}
	return []figure{result, {"per_trip_ns", result.value / float64(trips)}}
}

// Many goroutines lock one mutex repeatedly. With held=1 they yield while they hold it.
func mutex() []figure {
	tasks, turns, held := number("tasks", 1000), number("turns", 1000), number("held", 0)
	var lock sync.Mutex
	var all sync.WaitGroup
	count := int64(0)

	start := time.Now()
	all.Add(int(tasks))
	for i := int64(0); i < tasks; i++ {
		go func() {
			for j := int64(0); j < turns; j++ {
				lock.Lock()
				count++
				if held != 0 {
					runtime.Gosched()
				}
				lock.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
	result := elapsed(start)
	if count != tasks*turns {
		fail("%d turns, not %d", count, tasks*turns)
	}
	return []figure{result, {"per_turn_ns", result.value / float64(tasks*turns)}}
}

// Half of the goroutines send, the others receive, all through one channel.
func channel() []figure {
	tasks, turns, capacity := number("tasks", 1000), number("turns", 1000), number("capacity", 16)
	pairs := tasks / 2
	values := make(chan int64, capacity)
	var senders, receivers sync.WaitGroup
	var sum int64

	start := time.Now()
	senders.Add(int(pairs))
	receivers.Add(int(pairs))
	for i := int64(0); i < pairs; i++ {
		go func(i int64) {
			for j := int64(0); j < turns; j++ {
				values <- i*turns + j
			}
			senders.Done()
		}(i)
		go func() {
			own := int64(0)
			for value := range values {
				own += value
			}
			atomic.AddInt64(&sum, own)
			receivers.Done()
		}()
	}
	senders.Wait()
	close(values)
	receivers.Wait()
	result := elapsed(start)
	count := pairs * turns
	if sum != count*(count-1)/2 {
		fail("the sum is %d, not %d", sum, count*(count-1)/2)
	}
	return []figure{result, {"per_turn_ns", result.value / float64(count)}}
}

func statusKib(name string) int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var kib int64
		if count, _ := fmt.Sscanf(lines.Text(), name+": %d kB", &kib); count == 1 {
			return kib
		}
	}
	return 0
}

// Each goroutine starts another one, sleeps until the common deadline, and waits for the other.
func sleepers() []figure {
	tasks, sleepMs := number("tasks", 1000*1000), number("sleep_ms", 8000)
	var all sync.WaitGroup
	var asleep, sum, allAsleepNs int64

	beforeKib := statusKib("VmRSS") + statusKib("VmPTE")
	start := time.Now()
	wake := start.Add(time.Duration(sleepMs) * time.Millisecond)
	all.Add(int(tasks))
	go func() {
		for i := int64(0); i < tasks; i++ {
			go func(i int64) {
				child := make(chan int64, 1)
				go func() { child <- i + 1 }()
				if atomic.AddInt64(&asleep, 1) == tasks {
					atomic.StoreInt64(&allAsleepNs, int64(time.Since(start)))
				}
				time.Sleep(time.Until(wake))
				atomic.AddInt64(&sum, <-child)
				all.Done()
			}(i)
		}
	}()
	time.Sleep(time.Until(wake.Add(time.Duration(-sleepMs) * time.Millisecond / 50)))
	inTime := atomic.LoadInt64(&asleep)
	rssKib, pteKib := statusKib("VmRSS"), statusKib("VmPTE")
	all.Wait()
	finish := time.Since(wake)
	if inTime != tasks {
		fail("only %d of %d tasks slept in time: more sleep_ms are needed", inTime, tasks)
	}
	if sum != tasks*(tasks+1)/2 {
		fail("the sum is %d, not %d", sum, tasks*(tasks+1)/2)
	}
	return []figure{{"tasks", float64(tasks)},
		{"bytes_per_task", float64(rssKib+pteKib-beforeKib) * 1024 / float64(tasks)},
		{"rss_kib", float64(rssKib)}, {"pte_kib", float64(pteKib)},
		{"start_ns", float64(allAsleepNs)}, {"finish_ns", float64(finish.Nanoseconds())}}
}

func main() {
	works := map[string]func() []figure{
		"pingpong": pingpong, "mutex": mutex, "channel": channel, "sleepers": sleepers,
	}

	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: filch-bench-wait-go <work> <workers> [<setting>=<value>...]")
		os.Exit(2)
	}
	workers, err := strconv.Atoi(os.Args[2])
	if err != nil || workers < 1 {
		fail("workers must be a number, not '%s'", os.Args[2])
	}
	run := works[os.Args[1]]
	if run == nil {
		os.Exit(exitSkip)
	}
	runtime.GOMAXPROCS(workers)
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
		continue // the cores run at full speed
	}
	fmt.Printf("RESULT go %s %d", os.Args[1], workers)
	for _, f := range run() {
		fmt.Printf(" %s=%.0f", f.name, f.value)
	}
	fmt.Println()
}
