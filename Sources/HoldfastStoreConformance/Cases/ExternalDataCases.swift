import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tests rules X1–X4 of the store contract: values in external files. The kit assumes that a value of 1 MiB is stored externally. Smaller
/// values only have to be returned unchanged.
enum ExternalDataCases {
  static let all = [
    StoreConformanceCase("X1", "values of every size are returned unchanged, also after reopening", requires: needed, sizes),
    StoreConformanceCase("X1", "a replaced value is readable while an older view is in use", requires: needed, olderViews),
    StoreConformanceCase("X2", "reading an unknown name throws, and rows stay readable", requires: needed, unknownNames),
    StoreConformanceCase("X2", "a damaged or missing file is an error, and rows stay readable", requires: needed, damagedFiles),
    StoreConformanceCase("X3", "changing another slot keeps the file", requires: needed, unchangedSlots),
    StoreConformanceCase("X3", "saving the name of another row's file is refused", requires: needed, foreignNames),
    StoreConformanceCase("X3", "an aborted or refused save keeps the old value", requires: needed, takenBack),
    StoreConformanceCase("X4", "files of replaced and deleted values are removed", requires: needed, collected),
  ]

  private static let needed = StoreCapabilities.with { $0.externalData = true }

  static let model: ManagedObjectModel = {
    let photo = EntityDescription(
      "Photo",
      attributes: [
        AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
        AttributeDescription("title", .string, isOptional: true),
        AttributeDescription("look", .transformable, isOptional: true, allowsExternalBinaryDataStorage: true),
      ])
    do { return try ManagedObjectModel(entities: [photo]) } catch {
      preconditionFailure("A model of the conformance kit is invalid: \(error)")
    }
  }()

  /// Data of one mebibyte that depends on a number.
  static func large(_ number: UInt8, count: Int = 1 << 20) -> Data {
    var data = Data(count: count)
    for place in stride(from: 0, to: count, by: 997) { data[place] = UInt8(truncatingIfNeeded: place) ^ number }
    return data
  }

  // MARK: Helpers

  struct Album {
    let store: TestedStore
    let graph: ExpectedGraph

    init(_ store: TestedStore) {
      self.store = store
      graph = ExpectedGraph(store)
    }

    var entity: ManagedObjectModel.Entity { store.entity("Photo") }

    func slot(_ name: String) -> SlotIndex { entity.slot(named: name)! }

    /// Inserts photos with images.
    func insert(_ images: [Data?]) throws -> [ObjectKey] {
      let keys = try store.keys("Photo", images.count)
      try store.save(graph) { edit in
        for (key, image) in zip(keys, images) {
          edit.insert("Photo", key, ["image": image.map { .data($0) } ?? .null, "title": .string("Photo")])
        }
      }
      return keys
    }

    func set(_ key: ObjectKey, _ values: [String: StoreValue]) throws { try store.save(graph) { $0.update("Photo", key, values) } }

    func row(_ key: ObjectKey) throws -> RowView {
      guard let row = try store.rows("Photo", [key]).first else {
        throw StoreError(.missingRow, operation: "read a photo", reason: "No row has the key \(key).")
      }
      return row
    }

    /// The name of the file that contains a value.
    func id(_ key: ObjectKey, _ name: String = "image") throws -> UUID {
      if case .externalData(let id) = try row(key)[slot(name)] { return id }
      throw StoreError(
        .wrongType, operation: "read a photo", reason: "The row contains a value of 1 MiB, which the store should keep in a file.")
    }

    func read(_ id: UUID, _ key: ObjectKey, _ name: String = "image") throws -> Data {
      try store.store.answers.perform(ExternalDataRequest(entity: entity.index, slot: slot(name), key: key, id: id))
    }

    /// The value, from its row or its file.
    func value(_ key: ObjectKey, _ name: String = "image") throws -> Data? {
      switch try row(key)[slot(name)] {
      case .null: nil
      case .data(let data): data
      case .externalData(let id): try read(id, key, name)
      default: throw StoreError(.wrongType, operation: "read a photo", reason: "The value has the wrong type.")
      }
    }

    func expectGone(_ id: UUID, _ key: ObjectKey, _ what: String) {
      store.run.expectError(.missingExternalData, of: "reading \(what)") { _ = try read(id, key) }
    }
  }

  private static func open(_ run: CaseRun) throws -> Album { Album(try run.openNew(model)) }

  // MARK: Cases

  private static func sizes(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let album = Album(try run.open(place, model))
    let images: [Data?] = [
      nil, Data(), Data([0]), large(1, count: 1000), large(2, count: 100 << 10), large(3, count: (100 << 10) + 1), large(4),
    ]
    let keys = try album.insert(images)
    try album.set(keys[0], ["look": .data(large(9))])
    _ = try album.id(keys[6])
    func expectAll(_ album: Album, _ when: String) throws {
      for (key, image) in zip(keys, images) where try album.value(key) != image {
        run.fail(
          "the image of \(image?.count ?? -1) bytes \(when) to be unchanged", got: "\(try album.value(key)?.count ?? -1) bytes that differ")
      }
      run.expect(try album.value(keys[0], "look") == large(9), "the transformable value \(when) to be unchanged", got: "another value")
    }
    try expectAll(album, "after the save")
    try run.close(album.store)
    try expectAll(Album(try run.open(place, model)), "after reopening")
  }

  private static func olderViews(_ run: CaseRun) throws {
    let album = try open(run)
    let key = try album.insert([large(1)])[0]
    let view = try album.store.store.beginRead(.snapshot)
    let id = try album.id(key)
    try album.set(key, ["image": .data(large(2))])
    run.expect(try album.read(id, key) == large(1), "the replaced value to be readable in the older view", got: "another value")
    try album.store.save(album.graph) { $0.delete("Photo", key) }
    run.expect(try album.read(id, key) == large(1), "the deleted value to be readable in the older view", got: "another value")
    view.end()
    album.expectGone(id, key, "a replaced value after the last view ended")
  }

  private static func unknownNames(_ run: CaseRun) throws {
    let album = try open(run)
    let key = try album.insert([large(1)])[0]
    album.expectGone(UUID(), key, "an unknown name")
    let error = run.expectError(.missingExternalData, of: "reading an unknown name") { _ = try album.read(UUID(), key) }
    if let error {
      for part in ["Photo", "image", "\(key)"] where !error.description.contains(part) {
        run.fail("the error to name \(part)", got: error.description)
      }
    }
    run.expectEqual(try album.row(key)[album.slot("title")], .string("Photo"), "the title in the same row")
  }

  private static func unchangedSlots(_ run: CaseRun) throws {
    let album = try open(run)
    let keys = try album.insert([large(1), large(2)])
    let ids = try keys.map { try album.id($0) }
    // The graph's row contains the bytes; a row read from the store contains the name.
    try album.set(keys[0], ["title": .string("Renamed")])
    album.graph.put(try album.row(keys[1]), album.entity.index)
    try album.set(keys[1], ["title": .string("Renamed")])
    for (key, id) in zip(keys, ids) {
      run.expectEqual(try album.id(key), id, "the file name after changing another slot")
      run.expectEqual(try album.row(key)[album.slot("title")], .string("Renamed"), "the changed slot")
    }
    run.expect(try album.value(keys[0]) == large(1) && album.value(keys[1]) == large(2), "the values to be unchanged", got: "other values")
  }

  private static func foreignNames(_ run: CaseRun) throws {
    let album = try open(run)
    let keys = try album.insert([large(1), Data([1])])
    let id = try album.id(keys[0])
    let edit = GraphEdit(album.graph)
    edit.update("Photo", keys[1], ["image": .externalData(id)])
    run.expectError(.unstorableValue, of: "saving the name of another row's file") { try album.store.save(edit.request()) }
    run.expect(try album.value(keys[0]) == large(1) && album.value(keys[1]) == Data([1]), "the values to be unchanged", got: "other values")
  }

  private static func takenBack(_ run: CaseRun) throws {
    let album = try open(run)
    let key = try album.insert([large(1)])[0]
    let id = try album.id(key)
    let edit = GraphEdit(album.graph)
    edit.update("Photo", key, ["image": .data(large(2))])
    try album.store.store.prepare(CodedCopy.of(edit.request())).abort()
    run.expectEqual(try album.id(key), id, "the file name after the abort")
    let wrong = GraphEdit(album.graph)
    wrong.update("Photo", key, expected: 77, ["image": .data(large(3))])
    run.expectError(.conflict, of: "saving with an unknown version") { try album.store.save(wrong.request()) }
    run.expect(try album.value(key) == large(1), "the value to be unchanged after a conflict", got: "another value")
    try album.set(key, ["image": .data(large(4))])
    run.expect(try album.value(key) == large(4), "the value of the next save to be stored", got: "another value")
  }

  private static func collected(_ run: CaseRun) throws {
    let album = try open(run)
    let keys = try album.insert([large(1), large(2), large(3), large(4)])
    let ids = try keys.map { try album.id($0) }
    try album.set(keys[0], ["image": .data(large(5))])
    try album.set(keys[1], ["image": .data(Data([1]))])
    try album.set(keys[2], ["image": .null])
    try album.store.save(album.graph) { $0.delete("Photo", keys[3]) }
    for (place, what) in ["a value replaced by a large one", "a value replaced by a small one", "a value set to nil", "a deleted value"]
      .enumerated()
    { album.expectGone(ids[place], keys[place], what) }
    run.expect(
      try album.value(keys[0]) == large(5) && album.value(keys[1]) == Data([1]), "the new values to be stored", got: "other values")
    run.expect(try album.value(keys[2]) == nil, "the value set to nil to be nil", got: "a value")
  }
}
