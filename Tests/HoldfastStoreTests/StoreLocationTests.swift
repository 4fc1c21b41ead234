import Foundation
import HoldfastStore
import Testing

@Suite struct StoreLocationTests {
  @Test(arguments: [
    ("https://example.org/notes", "https://example.org/notes"),
    ("https://example.org:8080", "https://example.org:8080"),
    ("https://reader:secret@example.org/notes?token=123#part", "https://example.org/notes"),
    ("postgres://user:sec@ret@db.example.org:5432/notes", "postgres://db.example.org:5432/notes"),
    ("https://example.org?token=123", "https://example.org"),
    ("user:secret@example.org", "example.org"),
    // Not escaped as they should be.
    ("postgres://user:sec/ret@example.org/notes", "postgres://…"),
    ("postgres://user:sec?ret@example.org/notes", "postgres://…"),
    ("postgres://user:s@c#ret@example.org/notes", "postgres://…"),
    ("https://example.org/notes?token=sec@ret", "https://…"),
    ("", ""),
  ])
  func `the description of a URL omits credentials`(url: String, description: String) {
    let location = StoreLocation(url: url)
    #expect(location.description == description)
    #expect(location.address == url && location.path == nil)
  }

  @Test func `printing, dumping and encoding a location omits its address`() throws {
    let location = StoreLocation(address: "host=db password=secret", description: "db")
    var dumped = ""
    dump(StoreDescription(type: "test", at: location) { preconditionFailure("The store isn't made.") }, to: &dumped)
    let encoded = String(decoding: try JSONEncoder().encode(location), as: UTF8.self)
    for text in ["\(location)", String(reflecting: location), "\([location])", dumped, encoded] {
      #expect(text.contains("db") && !text.contains("secret"), "\(text)")
    }
    #expect(try JSONDecoder().decode(StoreLocation.self, from: Data(encoded.utf8)) == StoreLocation(address: "db", description: "db"))
  }

  @Test func `a file's location is its path, and that of a store in memory its name`() throws {
    #expect(StoreLocation.file("/a/b").path == "/a/b" && StoreLocation.file("/a/b").description == "/a/b")
    #expect(StoreLocation.named("scratch").path == nil && StoreLocation.named("scratch").description == "scratch")
    let coded = try JSONDecoder().decode(StoreLocation.self, from: JSONEncoder().encode(StoreLocation.file("/a/b")))
    #expect(coded == .file("/a/b"))
  }
}
