import ArgumentParser
import DogService
import HoldfastSQLiteStore
import Hummingbird
import Logging

/// Serves a register of dogs over HTTP.
@main struct DogServer: AsyncParsableCommand {
  @Option(help: "The file of the store, which is created if it doesn't exist.") var store = "dogs.sqlite"
  @Option(help: "The interface to listen on.") var hostname = "127.0.0.1"
  @Option(help: "The port, or 0 for one that the system chooses.") var port = 8080
  @Flag(help: "Log every request to the store.") var verbose = false

  func run() async throws {
    var logger = Logger(label: "dogs")
    logger.logLevel = verbose ? .debug : .info
    let register = try DogRegister(.sqlite(at: store))
    try await DogService(register, logger: logger).application(hostname: hostname, port: port).runService()
  }
}
