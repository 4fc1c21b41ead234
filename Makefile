# The commands of a checkout. `make compare` and `make test` install what is missing. They need Swift, gcc and apt.

# Options of `compare`, `properties` and `test`, for example: make compare ARGS="--dataset people --size 100000 --stores sqlite,json",
# make test ARGS="--filter JSON"
ARGS ?=

BENCHMARKS := --package-path Benchmarks
# A statically linked runtime starts two milliseconds sooner, half of the time that a small process takes.
RELEASE := -c release $(if $(filter Linux,$(shell uname -s)),--static-swift-stdlib)
SWIFT_FILES := $(wildcard Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests Fuzzing/Package.swift \
  Fuzzing/Sources Tools/Package.swift Tools/Sources Tools/Tests Examples/Package.swift Examples/Sources Examples/Tests \
  $(foreach package,DogServer HTTPStore,Examples/$(package)/Package.swift Examples/$(package)/Sources Examples/$(package)/Tests))

.PHONY: compare properties test test-full sanitize build docs format lint clean setup setup-compare

# Measures every store with people, ordered lists and this machine's own package index. Prints tables, and writes comparison/results.json,
# comparison/summary.md and comparison/report.html.
compare: setup-compare
	swift build $(BENCHMARKS) $(RELEASE) --product holdfast-bench
	"$$(swift build $(BENCHMARKS) $(RELEASE) --show-bin-path)/holdfast-bench" compare $(ARGS)

# Measures typed properties and workloads of classes with macros beside those by hand and a Swift class. Prints tables.
properties: setup
	. Scripts/host-syntax && swift run $(BENCHMARKS) -c release holdfast-bench properties $(ARGS)

# Runs all test suites of the library, the benchmarks, the `holdfast` command and the examples, with a share of the long random tests. Prints
# the failures at the end.
test: setup
	Scripts/test $(ARGS)

# Runs everything: all rounds of the long tests, the examples over HTTP, the fuzzers' seeds under the address sanitizer, and the library's tests
# under the thread sanitizer.
test-full: setup
	HOLDFAST_TESTS=full Scripts/test $(ARGS)
	Scripts/test-sanitized
	Scripts/sanitize

# Runs the library's tests under the thread sanitizer, which reports data races.
sanitize: setup
	Scripts/sanitize $(ARGS)

# Builds the library.
build: setup
	swift build

# Builds the documentation of all library products as one static site in .build/documentation. A warning is an error. To view it:
#   python3 -m http.server --directory .build/documentation 8000
# and open http://localhost:8000/documentation/
docs: setup
	Scripts/build-documentation

# Formats all sources.
format:
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

# Fails if a source isn't formatted.
lint:
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# Removes all build products and results of comparisons.
clean:
	rm -rf .build Benchmarks/.build Fuzzing/.build Tools/.build Examples/.build Examples/HTTPStore/.build Examples/DogServer/.build comparison

# Installs what is missing.
setup:
	@.ci/setup build

# The same, and a package index for the comparison, unless ARGS names a file of packages.
setup-compare:
	@.ci/setup build $(if $(findstring --packages,$(ARGS)),,packages)
