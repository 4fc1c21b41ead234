package import Hummingbird
package import Logging
import ServiceLifecycle

/// The server: routes over HTTP, and a store that is closed after the last request.
package struct DogService: Sendable {
  package let register: DogRegister
  package let logger: Logger

  package init(_ register: DogRegister, logger: Logger) { (self.register, self.logger) = (register, logger) }

  /// The application. Run it with `runService()`, which ends when the process receives an interrupt or a termination signal.
  package func application(hostname: String = "127.0.0.1", port: Int = 8080) -> some ApplicationProtocol {
    register.container.persistentStoreCoordinator.logRequests(to: logger, level: .debug, slow: .milliseconds(200))
    var application = Application(
      router: DogRoutes(register).router, configuration: .init(address: .hostname(hostname, port: port)), logger: logger)
    application.addServices(StoreClosing(register: register))
    return application
  }
}

/// Closes the store. Services that were added first end last, so all requests have been answered then.
private struct StoreClosing: Service {
  let register: DogRegister

  func run() async throws {
    try? await gracefulShutdown()
    try register.container.persistentStoreCoordinator.close()
  }
}
