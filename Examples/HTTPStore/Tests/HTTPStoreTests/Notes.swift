import Foundation
import HTTPService
import HTTPStore
import Holdfast
import ServiceAPI
import Testing

@Entity final class Note: ManagedObject {
  var title = ""
  var stars = 0
  var folder: Folder?
}

@Entity final class Folder: ManagedObject {
  @Attribute(.unique) var name: String
  @Relationship(inverse: \Note.folder) var notes: ToMany<Note>
}

enum Notes {
  /// A context of a client of its own. Its closures run on a thread that may block.
  static func client(_ url: String) async throws -> BackgroundContext {
    try await MainActor.run {
      try PersistentContainer(for: Note.self, Folder.self, store: .http(at: url)).newBackgroundContext()
    }
  }

  /// A client, and a service that has received no request since ten notes were saved.
  static func tenNotes() async throws -> (service: TestService, context: BackgroundContext, url: String) {
    let service = try await TestService.start(HTTPService(recordsRequests: true)), url = service.url("notes"),
      context = try await client(url)
    try await context.perform { context in
      let folder = context.insert(Folder.self)
      folder.name = "Ideas"
      for number in 1...10 {
        let note = context.insert(Note.self)
        (note.title, note.stars, note.folder) = ("Note \(number)", number % 3, folder)
      }
      try context.save()
    }
    _ = service.service.outages.takeReceived()
    return (service, context, url)
  }
}

extension TestService {
  /// The requests since the last call: the method and the last part of the path.
  func takeRequests() -> [String] {
    service.outages.takeReceived().map { "\($0.method) \($0.path.split(separator: "/").dropFirst(2).joined(separator: "/"))" }
  }

  /// The queries since the last call.
  func takeQueries() throws -> [Query] {
    try service.outages.takeReceived().filter { $0.path.hasSuffix("/query") }.map { try JSONDecoder().decode(Query.self, from: $0.body) }
  }
}

/// The store error that a closure throws, also as the cause of another error.
func storeError<Result>(_ body: () throws -> Result) -> StoreError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? StoreError ?? (error as? PersistenceError)?.cause as? StoreError }
}
