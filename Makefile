# Shortcuts for CMake's presets. Each installs missing packages, then builds in build/<preset>.

PREFIX ?= /usr/local
build_type ?= Release
ctest_options ?=
mutate_options ?=
bench_options ?=
fuzz_seconds ?= 60
attack_seconds ?= 3600

# An older ThreadSanitizer does not start on a system that randomises many address bits.
no_aslr := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help demo check bench bench-deque bench-wait bench-io bench-files
.PHONY: asan tsan chaos aarch64 clang fuzz attack attack-programs mutants install clean

help:
	@echo 'make demo         build, then run a short benchmark against other runtimes'
	@echo 'make check        build and run all tests (some of them: ctest_options="-L unit")'
	@echo 'make install      install the library to PREFIX [$(PREFIX)]; honours DESTDIR'
	@echo '                  (with debug information, for gdb: build_type=RelWithDebInfo)'
	@echo 'make clean        remove build/'
	@echo
	@echo 'Benchmarks; the results are in build/bench:'
	@echo 'make bench        all of the main benchmark: under 10 minutes; results.jsonl'
	@echo 'make bench-deque  all deque kinds, alone and in programs: 2 minutes; deques.jsonl'
	@echo 'make bench-wait   waiting tasks, against Go and Boost.Fiber: under 5 minutes; wait.jsonl'
	@echo 'make bench-io     servers, against epoll loops, nginx and Go: under 5 minutes; io.jsonl'
	@echo 'make bench-files  duplicate files, with every deque kind and against programs made'
	@echo '                  for it: 1 minute; files.jsonl'
	@echo
	@echo 'Variants of the tests:'
	@echo 'make asan         with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make tsan         with ThreadSanitizer'
	@echo 'make chaos        with random delays of atomic operations (FILCH_CHAOS=16: one in 16)'
	@echo 'make aarch64      for 64-bit ARM, emulated'
	@echo 'make clang        built with clang, plain and with ThreadSanitizer'
	@echo 'make fuzz         fuzz the parser of examples/httpd.c (fuzz_seconds=60)'
	@echo 'make attack       run random programs in four builds, while calls of the system fail'
	@echo '                  (attack_seconds=3600; test/attack/README.md)'
	@echo 'make mutants      check that the model checker catches weakened code'
	@echo '                  (list the mutants: mutate_options="--list")'

build = cmake --preset $(1) && cmake --build --preset $(1)
test = $(build) && $(2) ctest --preset $(1) $(ctest_options)

# The user wants to see the table, so the build prints nothing unless it fails. bench_options go to
# the first program; if they are set, the second one does not run.
demo bench:
	@scripts/setup bench
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-bench $(if $(filter bench,$@),filch-bench-wait)) \
		>build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }
	@build/release/bench/filch-bench $(if $(filter demo,$@),--short) $(bench_options) \
		--output build/bench/results.jsonl
	@$(if $(filter bench,$@$(bench_options)),echo; bench/wait/compare --brief \
		--output build/bench/results.jsonl build/release/bench)

bench-deque:
	@scripts/setup
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-bench-deque filch-bench-filch filch-bench-serial) \
		>build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }
	@rm -f build/bench/deques.jsonl
	@build/release/bench/filch-bench-deque $(or $(bench_options),--figures) \
		--output build/bench/deques.jsonl
	@$(if $(bench_options),,echo; bench/deque/pools --output build/bench/deques.jsonl \
		build/release/bench)

# For each of these, bench/CMakeLists.txt has a target of that name; `compare` runs the comparison.
bench-wait: compare = bench/wait/compare
bench-io: compare = bench/io/compare
bench-files: compare = bench/dups/compare
bench-wait bench-io bench-files:
	@scripts/setup bench
	@mkdir -p build/bench
	@echo 'building ... (log: build/bench/build.log)'
	@($(call build,release) --target filch-$@) >build/bench/build.log 2>&1 || \
		{ cat build/bench/build.log; exit 1; }
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

# The fuzzer writes its findings to build/fuzz. Copy an input worth keeping to test/fuzz/http.
fuzz:
	scripts/setup clang
	mkdir -p build/fuzz/http
	clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iexamples \
		test/fuzz/http_fuzz.c examples/http/parse.c -o build/fuzz/http_fuzz
	cd build/fuzz && ./http_fuzz -max_total_time=$(fuzz_seconds) -max_len=20000 \
		-dict=../../test/fuzz/http.dict http ../../test/fuzz/http

attack-programs:
	scripts/setup
	for preset in release dev asan tsan; do \
		cmake --preset $$preset && cmake --build --preset $$preset --target attack || exit 1; done

attack: attack-programs
	test/attack/run $(attack_seconds)

mutants:
	scripts/setup
	verify/mutate $(mutate_options)

install:
	scripts/setup
	cmake --preset release -DFILCH_BENCH=OFF -DCMAKE_BUILD_TYPE=$(build_type)
	cmake --build --preset release --target filch
	cmake --install build/release --prefix '$(PREFIX)'

clean:
	rm -rf build
