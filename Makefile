# The commands of a checkout. `make compare` and `make test` do all their own set-up; they need Swift, gcc and apt.

# What `compare` and `test` are asked, for example: make compare ARGS="--dataset people --size 100000 --stores sqlite,json",
# make test ARGS="--filter JSON"
ARGS ?=

BENCHMARKS := --package-path Benchmarks
# A statically linked runtime starts two milliseconds sooner, which is half of what a small process takes.
RELEASE := -c release $(if $(filter Linux,$(shell uname -s)),--static-swift-stdlib)
SWIFT_FILES := $(wildcard Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests Fuzzing/Package.swift \
  Fuzzing/Sources Tools/Package.swift Tools/Sources Tools/Tests)

.PHONY: compare test test-full build docs format lint clean setup setup-compare

# Puts people, ordered lists and this machine's own package index through every store; prints tables, and writes
# comparison/results.json and comparison/report.html.
compare: setup-compare
	swift build $(BENCHMARKS) $(RELEASE) --product holdfast-bench
	"$$(swift build $(BENCHMARKS) $(RELEASE) --show-bin-path)/holdfast-bench" compare $(ARGS)

# Runs all tests of the library, of the benchmarks and of the command. What failed is printed at the end.
test: setup
	Scripts/test $(ARGS)

# The same with all rounds of the long tests, and the fuzzers' seeds under the address sanitizer.
test-full: setup
	HOLDFAST_TESTS=full Scripts/test $(ARGS)
	Scripts/test-sanitized

# Builds the library.
build: setup
	swift build

# Builds the documentation of all library products as one static site in .build/documentation; a warning is an error. To look at it:
#   python3 -m http.server --directory .build/documentation 8000
# and open http://localhost:8000/documentation/
docs: setup
	Scripts/build-documentation

# Rewrites all sources in the house style.
format:
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

# Fails when a source is not in the house style.
lint:
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# Removes what was built and compared.
clean:
	rm -rf .build Benchmarks/.build Fuzzing/.build Tools/.build comparison

# Installs what is missing.
setup:
	@.ci/setup build

# The same, with a package index to compare on unless a file of packages is named.
setup-compare:
	@.ci/setup build $(if $(findstring --packages,$(ARGS)),,packages)
