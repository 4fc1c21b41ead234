import Foundation
import HTTPService
import HTTPStore
import Holdfast
import ServiceAPI
import Testing

final class Note: ManagedObject {
  var folder: Folder? {
    get { toOne(0) }
    set { setToOne(0, newValue) }
  }
  var stars: Int {
    get { self[1] }
    set { self[1] = newValue }
  }
  var title: String {
    get { self[2] }
    set { self[2] = newValue }
  }
  override class var properties: [PropertyBinding] {
    [
      .toOne("folder", \Note.folder, slot: 0), .attribute("stars", \Note.stars, slot: 1), .attribute("title", \Note.title, slot: 2),
    ]
  }
}

final class Folder: ManagedObject {
  var name: String {
    get { self[0] }
    set { self[0] = newValue }
  }
  var notes: ToMany<Note> { toMany(0) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Folder.name, slot: 0), .toMany("notes", \Folder.notes, index: 0)]
  }
}

enum Notes {
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Note", attributes: [AttributeDescription("stars", .integer32, default: .int32(0)), AttributeDescription("title", .string)],
          relationships: [.toOne("folder", to: "Folder", inverse: "notes")]),
        EntityDescription(
          "Folder", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("notes", to: "Note", inverse: "folder")],
          uniquenessConstraints: [["name"]]),
      ])
    } catch {
      preconditionFailure("The model of the tests is invalid: \(error)")
    }
  }()

  /// A context of a client of its own. Its closures run on a thread that may block.
  static func client(_ url: String) async throws -> BackgroundContext {
    try await MainActor.run {
      try PersistentContainer(model: model, classes: [Note.self, Folder.self], store: .http(at: url)).newBackgroundContext()
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
