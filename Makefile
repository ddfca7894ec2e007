# Shortcuts for CMake's presets: each installs what is missing, then builds in build/<preset>.

PREFIX ?= /usr/local
ctest_options ?=
mutate_options ?=
bench_options ?=
fuzz_seconds ?= 60

# Where addresses are randomised over many bits, older ThreadSanitizers do not start.
no_aslr := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help demo check bench bench-deque bench-wait bench-io bench-files asan tsan chaos aarch64 clang fuzz mutants install clean

help:
	@echo 'make demo      build, then a short benchmark against other runtimes'
	@echo 'make check     build and run all tests (ctest_options="-L unit": some of them)'
	@echo 'make bench     the whole benchmark, below ten minutes; results in build/bench/results.jsonl'
	@echo 'make bench-deque   all kinds of deques, alone and under programs, two minutes; results in build/bench/deques.jsonl'
	@echo 'make bench-wait    works that wait, beside Go and Boost.Fiber, below five minutes; results in build/bench/wait.jsonl'
	@echo 'make bench-io      servers, beside bare epoll loops, nginx and Go, below five minutes; results in build/bench/io.jsonl'
	@echo 'make bench-files   duplicate files, on every deque and beside programs made for it, a minute; results in build/bench/files.jsonl'
	@echo 'make asan      the tests with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make tsan      the tests with ThreadSanitizer'
	@echo 'make chaos     the tests with random delays before atomic operations (FILCH_CHAOS=16: one in 16)'
	@echo 'make aarch64   the tests for 64-bit ARM, emulated'
	@echo 'make clang     the tests built with clang, plain and with ThreadSanitizer'
	@echo 'make fuzz      look for inputs that the parser of examples/httpd.c cannot take (fuzz_seconds=60)'
	@echo 'make mutants   does the model checker notice what is missing? (mutate_options="--list": which)'
	@echo 'make install   the library to PREFIX [$(PREFIX)]; DESTDIR is honoured'
	@echo 'make clean     remove build/'

build = cmake --preset $(1) && cmake --build --preset $(1)
test = $(build) && $(2) ctest --preset $(1) $(ctest_options)

# The table is what people want to see: the build speaks only when it fails. bench_options are the first program's, and with them the second is left out.
demo bench:
	@scripts/setup bench
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-bench $(if $(filter bench,$@),filch-bench-wait)) >build/bench/build.log 2>&1 || \
		{ cat build/bench/build.log; exit 1; }
	@build/release/bench/filch-bench $(if $(filter demo,$@),--short) $(bench_options) \
		--output build/bench/results.jsonl
	@$(if $(filter bench,$@$(bench_options)),echo; bench/wait/compare --brief --output build/bench/results.jsonl build/release/bench)

bench-deque:
	@scripts/setup
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-bench-deque filch-bench-filch filch-bench-serial) \
		>build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }
	@rm -f build/bench/deques.jsonl
	@build/release/bench/filch-bench-deque $(or $(bench_options),--figures) --output build/bench/deques.jsonl
	@$(if $(bench_options),,echo; bench/deque/pools --output build/bench/deques.jsonl build/release/bench)

# Each has a target of its name in bench/CMakeLists.txt, and a program that compares.
bench-wait: compare = bench/wait/compare
bench-io: compare = bench/io/compare
bench-files: compare = bench/dups/compare
bench-wait bench-io bench-files:
	@scripts/setup bench
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-$@) >build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }
	@rm -f build/bench/$(@:bench-%=%).jsonl
	@$(compare) $(bench_options) --output build/bench/$(@:bench-%=%).jsonl build/release/bench

check:
	scripts/setup
	$(call test,dev)

asan:
	scripts/setup
	$(call test,asan)

tsan:
	scripts/setup
	$(call test,tsan,$(no_aslr))

chaos:
	scripts/setup
	$(call test,chaos)

aarch64:
	scripts/setup aarch64
	$(call test,aarch64)

clang:
	scripts/setup clang
	$(call test,dev-clang)
	$(call test,tsan-clang,$(no_aslr))

# What it finds goes to build/fuzz; an input worth keeping to test/fuzz/http.
fuzz:
	scripts/setup clang
	mkdir -p build/fuzz/http
	clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iexamples \
		test/fuzz/http_fuzz.c examples/http/parse.c -o build/fuzz/http_fuzz
	cd build/fuzz && ./http_fuzz -max_total_time=$(fuzz_seconds) -max_len=20000 \
		-dict=../../test/fuzz/http.dict http ../../test/fuzz/http

mutants:
	scripts/setup
	verify/mutate $(mutate_options)

install:
	scripts/setup
	cmake --preset release -DFILCH_BENCH=OFF && cmake --build --preset release --target filch
	cmake --install build/release --prefix '$(PREFIX)'

clean:
	rm -rf build
