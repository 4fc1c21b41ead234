import Foundation
import HTTPService
import Holdfast
import ServiceAPI
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What the service receives.
@Suite struct RequestTests {
  @Test func aFetchOfOneObjectTransfersOneRow() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    let title = try await context.perform { context in
      var request = FetchRequest<Note>(sortedBy: [.descending(\.title)]) { $0.stars > 0 }
      (request.fetchLimit, request.fetchOffset) = (1, 2)
      return try context.fetch(request).first?.title
    }
    #expect(title == "Note 5")
    let received = service.service.outages.takeReceived()
    let query = try JSONDecoder().decode(Query.self, from: try #require(received.first).body)
    #expect(received.count == 1 && query.filter != nil && query.sorts.map(\.field) == ["title"] && query.offset == 2 && query.limit == 1)
    let body = try await send("POST", url + "/query", received[0].body).body
    #expect(try JSONDecoder().decode(QueryAnswer.self, from: body).rows.count == 1)
  }

  @Test func aCountTransfersNoRows() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    #expect(try await context.perform { try $0.count(Note.self) { $0.stars == 1 } } == 4)
    let received = service.service.outages.takeReceived()
    let body = try await send("POST", url + "/query", try #require(received.first).body).body
    let answer = try JSONDecoder().decode(QueryAnswer.self, from: body)
    #expect(received.count == 1 && answer.rows.isEmpty && answer.count == 4)
  }

  @Test func theFrameworkEvaluatesWhatTheServiceCannot() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    let count = try await context.perform { context in
      let request = FetchRequest<Note> { $0.stars == 1 && $0.title.beginsWith("NOTE", .caseInsensitive) }
      return try context.fetch(request).count
    }
    let query = try #require(try service.takeQueries().first)
    #expect(count == 4)
    if case .compare(.field("stars"), .equal, .constant)? = query.filter {} else { Issue.record("Another filter: \(query)") }
  }

  @Test func theNotesOfAFolderAreOneRequestForLinksAndOneForRows() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    _ = context
    let other = try await Notes.client(url)
    _ = service.takeRequests()
    let count = try await other.perform { context in
      try context.fetch(Folder.self).first?.notes.map(\.title).count
    }
    #expect(count == 10)
    #expect(service.takeRequests() == ["POST query", "POST links", "POST query"])
  }

  @Test func newObjectsAreOnePost() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    try await context.perform { context in
      for _ in 0..<3 { context.insert(Note.self).title = "New" }
      try context.save()
    }
    #expect(service.takeRequests() == ["POST keys", "POST saves"])
  }

  @Test func changedObjectsAreCheckedBeforeAnyStoreCommits() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    try await context.perform { context in
      for note in try context.fetch(Note.self) { note.stars += 1 }
      _ = service.takeRequests()
      try context.save()
    }
    #expect(service.takeRequests() == ["POST checks", "POST saves"])
  }

  @Test func theVersionOfAnObjectIsTheEntityTagOfItsRow() async throws {
    let (_, context, url) = try await Notes.tenNotes()
    let key = try await context.perform { context in
      let note = try #require(try context.fetch(Note.self) { $0.title == "Note 7" }.first)
      note.title = "Renamed"
      try context.save()
      return note.objectID.key
    }
    let row = url + "/rows/Note/\(key)"
    let answer = try await send("GET", row)
    #expect(answer.etag == "\"2\"" && String(decoding: answer.body, as: UTF8.self).contains("Renamed"))
    #expect(try await send("GET", row, headers: ["If-None-Match": "\"2\""]).status == 304)
    #expect(try await send("GET", row, headers: ["If-None-Match": "\"1\""]).status == 200)
  }

  /// The bug: the store was created, and all other requests were sent to an address without the escape.
  @Test(arguments: [("team%2Fnotes", "team%2Fnotes"), ("notes/", "notes")])
  func theAddressOfAStoreCanHaveAnEscapedSlashOrEndWithASlash(_ address: String, _ store: String) async throws {
    let service = try await TestService.start(HTTPService(recordsRequests: true)), url = service.url(address)
    let context = try await Notes.client(url)
    try await context.perform { context in
      context.insert(Note.self).title = "Escaped"
      try context.save()
    }
    let paths = service.service.outages.takeReceived().map(\.path)
    #expect(paths.suffix(2) == ["/stores/\(store)/keys", "/stores/\(store)/saves"])
    #expect(try await Notes.client(url).perform { try $0.fetch(Note.self).map(\.title) } == ["Escaped"])
  }

  @Test func anInvalidRequestIsRefused() async throws {
    let (service, _, url) = try await Notes.tenNotes()
    var query = Query(Selection(table: "Note", types: ["Note"]))
    query.offset = -1
    #expect(try await send("POST", url + "/query", JSONEncoder().encode(query)).status == 400)
    for count in [-1, Int64.max] {
      let keys = try JSONEncoder().encode([KeyRange(table: "Note", count: count)])
      #expect(try await send("POST", url + "/keys", keys).status == 400)
    }
    #expect(try await send("POST", url + "/saves", JSONEncoder().encode(Save())).status == 400)
    #expect(try await send("GET", service.url("unknown")).status == 404)
  }
}

/// Sends a request without the store.
func send(
  _ method: String, _ url: String, _ body: Data? = nil, headers: [String: String] = [:]
) async throws -> (status: Int, body: Data, etag: String?) {
  var request = URLRequest(url: try #require(URL(string: url)))
  request.httpMethod = method
  request.httpBody = body
  // On a busy machine, the default of a minute may be too short.
  request.timeoutInterval = 3600
  if body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
  for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
  let (data, response) = try await URLSession.shared.data(for: request)
  let answer = try #require(response as? HTTPURLResponse)
  return (answer.statusCode, data, answer.value(forHTTPHeaderField: "ETag"))
}
