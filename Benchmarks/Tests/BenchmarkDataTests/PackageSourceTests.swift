import BenchmarkData
import Testing

@Suite struct PackageSourceTests {
  @Test("A missing file is an error that names the file and suggests what to pass")
  func missingFile() {
    #expect {
      try PackageSource.file("/no/such/file").parse()
    } throws: {
      "\($0)" == "Couldn't read the package index /no/such/file: No such file or directory. Pass a file of control stanzas."
    }
  }

  @Test("A folder is an error as well")
  func folder() {
    #expect(throws: PackageSourceError.self) { try PackageSource.file("/").parse() }
  }

  @Test("A file without packages is an error")
  func noPackages() {
    #expect(throws: PackageSourceError.empty(.file("/dev/null"))) { try PackageSource.file("/dev/null").parse() }
  }

  @Test("An empty machine index names the command that fills it")
  func emptyIndex() {
    #expect(PackageSourceError.empty(.aptCache).description.contains("apt-get update"))
  }
}
