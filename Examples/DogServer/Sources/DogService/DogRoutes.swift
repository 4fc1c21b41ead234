import Foundation
import Holdfast
import HoldfastStore
package import Hummingbird

/// The requests of the service.
///
/// | request | answer |
/// |---|---|
/// | `GET /dogs?name=Fi&offset=20&limit=10` | a ``DogPage``. All parameters are optional |
/// | `POST /dogs` | 201 with the dog of a ``NewDog`` and its address; 409 if its chip is taken |
/// | `GET /dogs/TAG` | the dog, or 404 |
/// | `PATCH /dogs/TAG` | the dog after a ``DogUpdate``; 409 with the current dog if the client's revision is outdated |
///
/// Values that the model refuses are answered with 422, a store that is busy or whose disk is full with 503, and a save that may have
/// taken effect with 500.
package struct DogRoutes: Sendable {
  private let register: DogRegister

  package init(_ register: DogRegister) { self.register = register }

  package var router: Router<BasicRequestContext> {
    let router = Router()
    router.add(middleware: LogRequestsMiddleware(.info))
    router.add(middleware: RefusalMiddleware())
    let dogs = router.group("dogs")
    dogs.get { request, _ in
      let name = request.uri.queryParameters["name"].map(String.init) ?? ""
      let offset = try Self.number("offset", request, 0...Int.max / 2) ?? 0, limit = try Self.number("limit", request, 1...100) ?? 20
      return try register.page(named: name, offset: offset, limit: limit)
    }
    dogs.post { request, context in
      let dog = try await register.add(request.decode(as: NewDog.self, context: context))
      return EditedResponse(status: .created, headers: [.location: "/dogs/\(dog.tag)"], response: dog)
    }
    dogs.get(":tag") { _, context in
      guard let dog = try register.dog(Self.tag(context)) else { throw HTTPError(.notFound) }
      return dog
    }
    dogs.patch(":tag") { request, context in
      let update = try await request.decode(as: DogUpdate.self, context: context)
      guard let dog = try await register.update(Self.tag(context), update) else { throw HTTPError(.notFound) }
      return dog
    }
    return router
  }

  /// The tag in the address. An address that isn't a tag has no dog.
  private static func tag(_ context: BasicRequestContext) throws -> UUID {
    guard let tag = UUID(uuidString: try context.parameters.require("tag")) else { throw HTTPError(.notFound) }
    return tag
  }

  private static func number(_ name: String, _ request: Request, _ range: ClosedRange<Int>) throws -> Int? {
    guard let text = request.uri.queryParameters[name[...]] else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw HTTPError(.badRequest, message: "\(name) must be a number from \(range.lowerBound) to \(range.upperBound).")
    }
    return number
  }
}

/// Answers the errors of Holdfast with a status and a ``Refusal``.
struct RefusalMiddleware: RouterMiddleware {
  func handle(
    _ request: Request, context: BasicRequestContext, next: (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as any HTTPResponseError {
      throw error
    } catch {
      let (status, refusal) = Self.answer(to: error)
      // Descriptions contain no values of attributes.
      if status.kind == .serverError { context.logger.error("\(request.method) \(request.uri.path) failed: \(error)") }
      return try EditedResponse(status: status, response: refusal).response(from: request, context: context)
    }
  }

  static func answer(to error: any Error) -> (HTTPResponse.Status, Refusal) {
    switch error {
    case let error as OutdatedRevision:
      (.conflict, Refusal(reason: "The dog has been changed since it was read.", current: error.current))
    case let error as PersistenceError where error.code == .constraintConflict:
      (.conflict, Refusal(reason: "Another dog has this chip."))
    case let error as PersistenceError where error.code == .missingObject:
      (.notFound, Refusal(reason: "The dog has been deleted."))
    case let error as PersistenceError where (1550...1690).contains(error.coreDataCode):
      (.unprocessableContent, Refusal(reason: error.userMessage()))
    // The client would repeat the request after 503, and could add a dog twice.
    case let error as StoreError where error.code == .outcomeUnknown || error.code == .durabilityUnknown:
      (.internalServerError, Refusal(reason: "The change may have been saved. Read the dogs before you repeat it."))
    case let error as StoreError where error.isRetryable:
      (.serviceUnavailable, Refusal(reason: "The store isn't available. Try again later."))
    default: (.internalServerError, Refusal(reason: "The request failed."))
    }
  }
}
