import BenchmarkRunner
import Testing

@Suite struct ChildProcessTests {
  @Test("Output, status and time of a process are captured")
  func output() throws {
    let result = try ChildProcess("/bin/sh", ["-c", "echo one; echo 'two three'; exit 64"]).run()
    #expect(result.output == "one\ntwo three\n")
    #expect(result.status == 64)
    #expect(result.seconds > 0)
  }

  @Test("Output longer than a pipe's buffer is captured completely")
  func longOutput() throws {
    #expect(try ChildProcess("/bin/sh", ["-c", "head -c 1000000 /dev/zero | tr '\\0' x"]).run().output.utf8.count == 1_000_000)
  }

  @Test("For a killed process, the number of the signal is returned")
  func signal() throws {
    #expect(try ChildProcess("/bin/sh", ["-c", "kill -9 $$"]).run().status == -9)
  }

  @Test("A missing program is an error that names it")
  func missing() {
    #expect { try ChildProcess("/no/such/program", []).run() } throws: { "\($0)".contains("/no/such/program: No such file") }
  }

  @Test("A process that takes too long is killed")
  func timeout() {
    #expect(throws: ChildProcessError.self) { try ChildProcess("/bin/sleep", ["3600"], timeout: 0.2).run() }
  }

  @Test("The program knows its own path")
  func ownPath() {
    #expect(ChildProcess.ownPath().hasPrefix("/"))
  }
}
