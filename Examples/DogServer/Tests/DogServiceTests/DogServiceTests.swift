import DogService
import Foundation
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Hummingbird
import Testing

/// The service over HTTP, with a SQLite store.
@Suite struct DogServiceTests {
  private let folder = TemporaryFolder()
  private let unavailable = "The store isn't available. Try again later."

  @Test func aDogIsAddedAndFound() async throws {
    try await DogClient.serving(folder) { client in
      let answer = try await client.add(NewDog(name: "Fido", chip: "276098106234567", age: 3))
      let fido = try answer.body(DogMessage.self, .created)
      #expect(answer.location == "/dogs/\(fido.tag)" && fido.name == "Fido" && fido.age == 3 && fido.revision == 0)
      #expect(try await client.get("/dogs/\(fido.tag)").body(DogMessage.self) == fido)
      #expect(try await client.get("/dogs/\(UUID())").status == .notFound)
      #expect(try await client.get("/dogs/fido").status == .notFound)
      #expect(try await client.update(UUID(), DogUpdate(revision: 0)).status == .notFound)
    }
  }

  @Test func dogsAreThereAfterARestart() async throws {
    let tag = try await DogClient.serving(folder) { try await $0.add(NewDog(name: "Rex")).body(DogMessage.self, .created).tag }
    #expect(try await DogClient.serving(folder) { try await $0.get("/dogs/\(tag)").body(DogMessage.self).name } == "Rex")
  }

  @Test func pagesAndFiltersGoTogether() async throws {
    try await DogClient.serving(folder) { client in
      for number in 10..<55 { _ = try await client.add(NewDog(name: number.isMultiple(of: 3) ? "fifi \(number)" : "Rex \(number)")) }
      var names: [String] = [], offset: Int? = 0, pages = 0
      while let start = offset {
        let page = try await client.get("/dogs?name=FI&limit=4&offset=\(start)").body(DogPage.self)
        #expect(page.total == 15 && page.dogs.count <= 4)
        names += page.dogs.map(\.name)
        (offset, pages) = (page.next, pages + 1)
      }
      #expect(pages == 4 && names.count == 15 && names == names.sorted() && names.allSatisfy { $0.hasPrefix("fifi") })
      let first = try await client.get("/dogs").body(DogPage.self)
      #expect(first.total == 45 && first.dogs.count == 20 && first.next == 20 && first.dogs[0].name == "fifi 12")
      #expect(try await client.get("/dogs?offset=45").body(DogPage.self).next == nil)
      #expect(try await client.get("/dogs?name=%25").body(DogPage.self).total == 0)
      for query in ["limit=0", "limit=101", "limit=x", "offset=-1"] {
        #expect(try await client.get("/dogs?\(query)").status == .badRequest)
      }
    }
  }

  @Test func anUpdateOfAnOutdatedRevisionIsAConflict() async throws {
    try await DogClient.serving(folder) { client in
      let read = try await client.add(NewDog(name: "Fido")).body(DogMessage.self, .created)
      let older = try await client.update(read.tag, DogUpdate(revision: read.revision, age: 4)).body(DogMessage.self)
      #expect(older.age == 4 && older.revision == 1 && older.name == "Fido")
      let refusal = try await client.update(read.tag, DogUpdate(revision: read.revision, name: "Max")).body(Refusal.self, .conflict)
      #expect(refusal.current == older)
      let renamed = try await client.update(read.tag, DogUpdate(revision: older.revision, name: "Max")).body(DogMessage.self)
      #expect(renamed.name == "Max" && renamed.age == 4 && renamed.revision == 2)
    }
  }

  @Test func refusedValuesAreExplained() async throws {
    try await DogClient.serving(folder) { client in
      let chip = "276098106234567"
      let rex = try await client.add(NewDog(name: "Rex", chip: chip)).body(DogMessage.self, .created)
      #expect(try await client.add(NewDog(name: "Max", chip: chip)).body(Refusal.self, .conflict).reason == "Another dog has this chip.")
      #expect(
        try await client.add(NewDog(name: "Max", age: 41)).body(Refusal.self, .unprocessableContent).reason == "Age may be at most 40.")
      #expect(try await client.add(NewDog(name: "")).status == .unprocessableContent)
      #expect(try await client.add(NewDog(name: "Max", chip: "x")).status == .unprocessableContent)
      #expect(try await client.update(rex.tag, DogUpdate(revision: 0, age: -1)).status == .unprocessableContent)
      #expect(try await client.send("POST", "/dogs", Data("{".utf8)).status == .badRequest)
      #expect(try await client.get("/dogs").body(DogPage.self).dogs == [rex])
    }
  }

  @Test func nullRemovesAChipAndAMissingChipStays() async throws {
    try await DogClient.serving(folder) { client in
      let rex = try await client.add(NewDog(name: "Rex", chip: "276098106234567")).body(DogMessage.self, .created)
      let older = try await client.update(rex.tag, DogUpdate(revision: 0, age: 2)).body(DogMessage.self)
      #expect(older.chip == rex.chip)
      let bare = try await client.update(rex.tag, DogUpdate(revision: 1, chip: .some(nil))).body(DogMessage.self)
      #expect(bare.chip == nil && bare.age == 2)
    }
  }

  @Test func aRequestWithoutTimeLeftIsAnsweredWith503AndChangesNothing() async throws {
    let rex = try await DogClient.serving(folder) { try await $0.add(NewDog(name: "Rex")).body(DogMessage.self, .created) }
    // The time of each request is over before it begins, however fast the machine is.
    try await DogClient.serving(folder, timeout: .seconds(-1)) { client in
      let answers = [
        try await client.get("/dogs"), try await client.get("/dogs/\(rex.tag)"), try await client.add(NewDog(name: "Max")),
        try await client.update(rex.tag, DogUpdate(revision: 0, age: 4)),
      ]
      for answer in answers { #expect(try answer.body(Refusal.self, .serviceUnavailable).reason == unavailable) }
    }
    #expect(try await DogClient.serving(folder) { try await $0.get("/dogs").body(DogPage.self).dogs } == [rex])
  }

  @Test func aLockedStoreIsAnsweredWith503AndTheRequestCanBeRepeated() async throws {
    let sqlite = StoreDescription.sqlite(at: folder.store), store = FaultInjectingStore(sqlite.makeStore())
    let locked = StoreError(.locked, operation: "save", reason: "Another process holds a lock on the file.", isRetryable: true)
    try await DogClient.serving(store: StoreDescription(type: sqlite.type) { store }) { client in
      let rex = try await client.add(NewDog(name: "Rex")).body(DogMessage.self, .created)
      store.fail(.prepare, with: locked)
      let update = DogUpdate(revision: 0, age: 4)
      #expect(try await client.update(rex.tag, update).body(Refusal.self, .serviceUnavailable).reason == unavailable)
      #expect(try await client.get("/dogs").body(DogPage.self).dogs == [rex])
      let older = try await client.update(rex.tag, update).body(DogMessage.self)
      #expect(older.age == 4 && older.revision == 1)
      store.fail(.fetch, with: locked)
      #expect(try await client.get("/dogs").body(Refusal.self, .serviceUnavailable).reason == unavailable)
      #expect(try await client.get("/dogs").body(DogPage.self).dogs == [older])
    }
  }

  /// The bug: it was answered with 503. A client that repeated it could add the dog twice.
  @Test func aRequestThatMayHaveBeenSavedIsNotAnsweredAsOneToRepeat() async throws {
    let sqlite = StoreDescription.sqlite(at: folder.store), store = FaultInjectingStore(sqlite.makeStore())
    try await DogClient.serving(store: StoreDescription(type: sqlite.type) { store }) { client in
      for code in [StoreError.Code.outcomeUnknown, .durabilityUnknown] {
        store.fail(.commit, with: StoreError(code, operation: "save", reason: "A test said so.", isRetryable: true))
        let refusal = try await client.add(NewDog(name: "Rex")).body(Refusal.self, .internalServerError)
        #expect(refusal.reason == "The change may have been saved. Read the dogs before you repeat it.")
      }
    }
  }

  /// Each client updates the same dog several times, adds dogs of its own and reads pages. Every update that was answered counts, once.
  @Test func fiftyClientsAtATimeLoseNoUpdate() async throws {
    let clients = 50, updates = 4
    try await DogClient.serving(folder) { client in
      let shared = try await client.add(NewDog(name: "Shared")).body(DogMessage.self, .created)
      try await withThrowingDiscardingTaskGroup { group in
        for number in 0..<clients {
          group.addTask {
            var done = 0
            while done < updates {
              let read = try await client.get("/dogs/\(shared.tag)").body(DogMessage.self)
              let answer = try await client.update(shared.tag, DogUpdate(revision: read.revision, age: number % 40))
              if answer.status == .ok { done += 1 }
              #expect(answer.status == .ok || answer.status == .conflict)
            }
            #expect(try await client.add(NewDog(name: "Own \(number)")).status == .created)
            #expect(try await client.get("/dogs?name=own&limit=100").body(DogPage.self).total >= 1)
          }
        }
      }
      #expect(try await client.get("/dogs/\(shared.tag)").body(DogMessage.self).revision == clients * updates)
      #expect(try await client.get("/dogs?name=own").body(DogPage.self).total == clients)
    }
  }
}
