import HoldfastStore

/// Tests the rules of the store contract for ordered relationships.
enum OrderedCases {
  static let all = [
    StoreConformanceCase("L5", "order keys for every shape of relationship", keysOfEveryShape),
    StoreConformanceCase("S12", "moved targets get new keys, and the others keep theirs", moves),
    StoreConformanceCase("S12", "an order key is removed with its link", keysGoWithLinks),
    StoreConformanceCase("S12", "the two sides of a pair have separate orders", bothSides),
    StoreConformanceCase("S12", "order keys are removed with deleted targets and sources", deletions),
    StoreConformanceCase("S9", "an aborted save doesn't change the order", abort),
    StoreConformanceCase("V1", "a save doesn't change the order in a snapshot", requires: .with { $0.snapshots = true }, snapshots),
    StoreConformanceCase("O5", "the order is stored durably", reopening),
  ]

  /// Playlists with ordered relationships of every shape: entries (one-to-many), tags (many-to-many, ordered on both sides) and notes
  /// (without an inverse). Tags also follow each other.
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Playlist", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("entries", to: "Entry", inverse: "playlist", isOrdered: true),
            .toMany("tags", to: "Tag", inverse: "playlists", isOrdered: true),
            .toMany("notes", to: "Note", inverse: nil, isOrdered: true),
          ]),
        EntityDescription(
          "Entry", attributes: [AttributeDescription("title", .string)],
          relationships: [.toOne("playlist", to: "Playlist", inverse: "entries")]),
        EntityDescription(
          "Tag", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("playlists", to: "Playlist", inverse: "tags", isOrdered: true),
            .toMany("next", to: "Tag", inverse: "previous", isOrdered: true),
            .toMany("previous", to: "Tag", inverse: "next"),
          ]),
        EntityDescription("Note", attributes: [AttributeDescription("text", .string)]),
      ])
    } catch {
      preconditionFailure("A model of the conformance kit is invalid: \(error)")
    }
  }()

  private struct Music {
    let store: TestedStore
    let graph: ExpectedGraph
    let playlists: [ObjectKey]
    let entries: [ObjectKey]
    let tags: [ObjectKey]
    let notes: [ObjectKey]

    init(_ store: TestedStore) throws {
      self.store = store
      graph = ExpectedGraph(store)
      playlists = try store.keys("Playlist", 3)
      entries = try store.keys("Entry", 12)
      tags = try store.keys("Tag", 4)
      notes = try store.keys("Note", 5)
      let (playlists, entries, tags, notes) = (playlists, entries, tags, notes)
      try store.save(graph) { edit in
        for key in playlists { edit.insert("Playlist", key, ["name": .string("p\(key)")]) }
        for (place, key) in entries.enumerated() {
          edit.insert("Entry", key, ["title": .string("e\(place)"), "playlist": .key(playlists[place % 3])])
          // The order differs from that of the keys, so that a store can't return it by chance.
          edit.order("Playlist", "entries", playlists[place % 3], key, Int64(2048 - place * 100))
        }
        for (place, key) in tags.enumerated() {
          edit.insert("Tag", key, ["name": .string("t\(place)")])
          for (list, playlist) in playlists.enumerated() where (place + list) % 3 != 0 {
            edit.link("Playlist", "tags", playlist, key)
            edit.order("Playlist", "tags", playlist, key, Int64((place * 7 + list) % 5 * 1000 + place))
            edit.order("Tag", "playlists", key, playlist, Int64(-list))
          }
          edit.link("Tag", "next", key, tags[(place + 1) % 4])
          edit.order("Tag", "next", key, tags[(place + 1) % 4], 5)
          edit.link("Tag", "next", key, key)
          edit.order("Tag", "next", key, key, Int64(place))
        }
        for (place, key) in notes.enumerated() {
          edit.insert("Note", key, ["text": .string("n\(place)")])
          if place < 4 {
            edit.link("Playlist", "notes", playlists[place % 2], key)
            edit.order("Playlist", "notes", playlists[place % 2], key, Int64(100 - place))
          }
        }
      }
    }
  }

  private static func keysOfEveryShape(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    try music.store.expectContents(music.graph, "with ordered relationships")
  }

  private static func moves(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    let (playlists, entries, tags) = (music.playlists, music.entries, music.tags)
    try music.store.save(music.graph) { edit in
      edit.update("Playlist", playlists[0], [:])
      edit.order("Playlist", "entries", playlists[0], entries[0], .min)
      edit.order("Playlist", "entries", playlists[0], entries[6], 1_000_000)
      edit.order("Playlist", "tags", playlists[0], tags[1], -7)
      edit.order("Playlist", "notes", playlists[0], music.notes[2], 3)
    }
    try music.store.expectContents(music.graph, "after targets moved")
  }

  private static func keysGoWithLinks(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    let (playlists, entries, tags, store) = (music.playlists, music.entries, music.tags, music.store)
    try store.save(music.graph) { edit in
      edit.update("Entry", entries[0], ["playlist": .null])
      edit.update("Entry", entries[3], ["playlist": .key(playlists[1])])
      edit.order("Playlist", "entries", playlists[1], entries[3], 77)
      edit.unlink("Playlist", "tags", playlists[0], tags[1])
      edit.unlink("Playlist", "notes", playlists[0], music.notes[0])
      edit.link("Playlist", "notes", playlists[2], music.notes[1])
      edit.order("Playlist", "notes", playlists[2], music.notes[1], 8)
    }
    try store.expectContents(music.graph, "after removing links")
    // The links are added again without order keys: the old keys must not reappear.
    try store.save(music.graph) { edit in
      edit.update("Entry", entries[0], ["playlist": .key(playlists[0])])
      edit.link("Playlist", "tags", playlists[0], tags[1])
      edit.link("Playlist", "notes", playlists[0], music.notes[0])
    }
    try store.expectContents(music.graph, "after adding links again without order keys")
  }

  private static func bothSides(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    let (playlists, tags) = (music.playlists, music.tags)
    try music.store.save(music.graph) { edit in
      edit.order("Tag", "playlists", tags[1], playlists[0], 40)
      edit.order("Tag", "playlists", tags[1], playlists[1], 30)
    }
    try music.store.expectContents(music.graph, "after reordering one side")
    try music.store.save(music.graph) { $0.order("Playlist", "tags", playlists[0], tags[1], 99_999) }
    try music.store.expectContents(music.graph, "after reordering the other side")
  }

  private static func deletions(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    try music.store.save(music.graph) { edit in
      edit.delete("Entry", music.entries[3])
      edit.delete("Tag", music.tags[2])
      edit.delete("Note", music.notes[0])
    }
    try music.store.expectContents(music.graph, "after targets were deleted")
    try music.store.save(music.graph) { $0.delete("Playlist", music.playlists[1]) }
    try music.store.expectContents(music.graph, "after a source was deleted")
    try music.store.save(music.graph) { edit in edit.update("Entry", music.entries[1], ["playlist": .key(music.playlists[0])]) }
    try music.store.expectContents(music.graph, "after an entry of a deleted playlist got another playlist but no order key")
  }

  private static func abort(_ run: CaseRun) throws {
    let music = try Music(try run.openNew(model))
    let edit = GraphEdit(ExpectedGraph(music.graph))
    edit.order("Playlist", "entries", music.playlists[0], music.entries[0], 1)
    try music.store.store.prepare(edit.request()).abort()
    try music.store.expectContents(music.graph, "after an abort")
  }

  private static func snapshots(_ run: CaseRun) throws {
    for kind in [ReadViewKind.consistent, .snapshot] {
      let music = try Music(try run.openNew(model)), before = ExpectedGraph(music.graph), store = music.store
      let view = try store.store.beginRead(kind)
      try store.save(music.graph) { edit in
        edit.update("Playlist", music.playlists[0], [:])
        edit.order("Playlist", "entries", music.playlists[0], music.entries[0], .min)
        edit.order("Playlist", "tags", music.playlists[0], music.tags[1], -7)
        edit.order("Playlist", "notes", music.playlists[0], music.notes[2], 3)
      }
      try store.expectContents(before, "in a \(kind) view from before targets moved", in: view)
      view.end()
      try store.expectContents(music.graph, "after targets moved")
    }
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let music = try Music(try run.open(place, model))
    try run.close(music.store)
    try run.open(place, model).expectContents(music.graph, "after reopening")
  }
}
