import Holdfast
import Testing

/// Several clients of one store.
@Suite struct ConflictTests {
  @Test func aClientThatWasNotTheFirstToChangeAnObjectGetsAConflict() async throws {
    let (_, first, url) = try await Notes.tenNotes(), second = try await Notes.client(url)
    for client in [first, second] {
      try await client.perform { context in
        let note = try #require(try context.fetch(Note.self) { $0.title == "Note 1" }.first)
        note.stars = client === first ? 4 : 5
      }
    }
    try await first.perform { try $0.save() }
    try await second.perform { context in
      let note = try #require(try context.fetch(Note.self) { $0.title == "Note 1" }.first)
      let error = #expect(throws: PersistenceError.self) { try context.save() }
      #expect(error?.code == .conflict && error?.objectIDs == [note.objectID])
      let conflict = (error?.cause as? StoreError)?.conflicts.first
      #expect(conflict?.expectedVersion == 1 && conflict?.persisted?.version == 2)
      try context.refresh(note, mergeChanges: true)
      try context.save()
    }
    let stars = try await Notes.client(url).perform { try $0.fetch(Note.self) { $0.title == "Note 1" }.map(\.stars) }
    #expect(stars == [5])
  }

  @Test func clientsThatChangeDifferentObjectsHaveNoConflict() async throws {
    let (_, first, url) = try await Notes.tenNotes(), second = try await Notes.client(url)
    for (number, client) in [first, second].enumerated() {
      try await client.perform { context in
        let note = try #require(try context.fetch(Note.self) { $0.title == "Note \(number + 1)" }.first)
        note.title = "Changed"
        context.insert(Note.self).title = "New"
      }
    }
    try await first.perform { try $0.save() }
    try await second.perform { try $0.save() }
    let titles = try await Notes.client(url).perform { try $0.fetch(Note.self).map(\.title) }
    #expect(titles.filter { $0 == "Changed" }.count == 2 && titles.filter { $0 == "New" }.count == 2)
  }

  @Test func twoClientsCannotSaveTheSameUniqueValue() async throws {
    let (_, first, url) = try await Notes.tenNotes(), second = try await Notes.client(url)
    for client in [first, second] { await client.perform { $0.insert(Folder.self).name = "Plans" } }
    try await first.perform { try $0.save() }
    let error = await second.perform { context in #expect(throws: PersistenceError.self) { try context.save() } }
    #expect(error?.code == .constraintConflict)
    let names = try await Notes.client(url).perform { try $0.fetch(Folder.self).map(\.name).sorted() }
    #expect(names == ["Ideas", "Plans"])
  }

  @Test func deletingAFolderRemovesReferencesThatAnotherClientAdded() async throws {
    let (_, first, url) = try await Notes.tenNotes(), second = try await Notes.client(url)
    try await first.perform { context in context.delete(try #require(try context.fetch(Folder.self).first)) }
    try await second.perform { context in
      let note = context.insert(Note.self)
      (note.title, note.folder) = ("Late", try context.fetch(Folder.self).first)
      try context.save()
    }
    try await first.perform { try $0.save() }
    let folders = try await Notes.client(url).perform { try $0.fetch(Note.self).map { $0.folder == nil } }
    #expect(folders == Array(repeating: true, count: 11))
  }
}
