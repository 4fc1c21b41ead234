import HoldfastStore

/// Tests rule O7 of the store contract: damaged files. Without ``StorePlace/file``, the cases do nothing.
enum DamageCases {
  static let all = [
    StoreConformanceCase("O7", "a changed byte is detected, or changes no answer") { run in
      try damage(run) { bytes, step in
        stride(from: 0, to: bytes.count, by: step).lazy.map { place in
          Damage("bit \(place % 8) of byte \(place) changed") {
            var changed = bytes
            changed[place] ^= 1 << UInt8(place % 8)
            return changed
          }
        }
      }
    },
    StoreConformanceCase("O7", "a truncated file is detected, or changes no answer") { run in
      try damage(run) { bytes, step in
        stride(from: 0, to: bytes.count, by: step).lazy.map { length in Damage("only \(length) bytes") { Array(bytes[..<length]) } }
      }
    },
    StoreConformanceCase("O7", "additional bytes are detected, or change no answer") { run in
      try damage(run) { bytes, _ in
        [[0], [0xFF], [10], Array("{}".utf8), Array(repeating: 0, count: 4096), bytes].flatMap { more in
          [
            Damage("\(more.count) bytes added at the end (first byte: \(more[0]))") { bytes + more },
            Damage("\(more.count) bytes added at the beginning (first byte: \(more[0]))") { more + bytes },
          ]
        }
      }
    },
  ]

  /// A damaged copy of a file, made on demand.
  private struct Damage {
    let description: String
    let bytes: () -> [UInt8]

    init(_ description: String, _ bytes: @escaping () -> [UInt8]) { (self.description, self.bytes) = (description, bytes) }
  }

  private static let codes: Set<StoreError.Code> = [
    .damaged, .notAStore, .newerFormat, .incompatibleModel, .unsupportedModel, .wrongType, .tooLarge, .unsafeSchema,
  ]

  private static func damage(_ run: CaseRun, _ damages: ([UInt8], Int) -> some Sequence<Damage>) throws {
    let place = try run.makePlace()
    guard let file = place.file else { return }
    let used = try fill(run, place)
    let bytes = try file.read(), expected = try Answers(place, used)
    for damage in damages(bytes, max(1, file.step)) {
      let damaged = damage.bytes()
      try file.write(damaged)
      do {
        let got = try Answers(place, used)
        run.expect(got == expected, "an error or unchanged answers from a file with \(damage.description)", got: got.difference(expected))
      } catch let error as StoreError {
        run.expect(
          codes.contains(error.code), "an error for damaged data from a file with \(damage.description)", got: error.description)
        run.expect(try file.read() == damaged, "the file with \(damage.description) to stay unchanged", got: "another file")
      }
    }
    try file.write(bytes)
    run.expect(try Answers(place, used) == expected, "the answers to be the same after the file was restored", got: "other answers")
  }

  /// Saves a few rows of every kind, and metadata. The file is small, because the store is opened for each damaged byte.
  ///
  /// - Returns: The reserved keys of each entity. The largest key of `Person` belonged to a row that was deleted.
  private static func fill(_ run: CaseRun, _ place: StorePlace) throws -> [Set<ObjectKey>] {
    let store = try run.open(place, ConformanceModel.general), graph = ExpectedGraph(store)
    let people = try store.keys("Person", 2), company = try store.keys("Company", 1)[0], club = try store.keys("Club", 1)[0]
    let sample = try store.keys("Sample", 1)[0]
    try store.save(graph) { edit in
      edit.insert("Company", company, ["name": .string("Company"), "size": .int32(70_000)])
      edit.insert("Club", club, ["name": .string("Club \u{E9}")])
      for key in people {
        edit.insert("Person", key, ["name": .string("Person \(key)"), "number": .key(key), "employer": .key(company)])
      }
      edit.link("Person", "friends", people[0], people[1])
      edit.link("Person", "clubs", people[1], club)
      let types = AttributeType.storedCases.compactMap { type in ConformanceValues.values(of: type).last.map { (type, $0) } }
      edit.insert("Sample", sample, Dictionary(uniqueKeysWithValues: types.map { (ConformanceModel.attributeName($0), $1) }))
    }
    let unused = try store.model.entities.map { try store.keys($0.name, 1000) }
    let deleted = unused[store.entity("Person").index.rawValue][999]
    try store.save(graph) { $0.insert("Person", deleted, ["name": .string("Deleted")]) }
    try store.save(graph) { $0.delete("Person", deleted) }
    try store.store.setMetadata(["title": .string("Metadata"), "number": .int64(7)])
    try run.close(store)
    return zip(store.model.entities, unused).map { Set($1).union(graph.rows(of: $0).keys) }
  }

  /// The answers of a store to requests of every kind, as text.
  private struct Answers: Equatable {
    private var lines: [String] = []

    /// Collects the answers of an open store, and closes it. Then reads the stored model, which is reliable only if the store opens.
    init(_ place: StorePlace, _ used: [Set<ObjectKey>]) throws {
      let store = place.description.makeStore()
      do {
        try add(store, used)
        try store.close()
      } catch {
        try? store.close()
        throw error
      }
      let closed = place.description.administration
      guard closed.supports(StoredModelRequest.self) else { return }
      let model = try closed.perform(StoredModelRequest())
      lines.append(model == ConformanceModel.general ? "the stored model" : model == nil ? "no stored model" : "another stored model")
    }

    private mutating func add(_ store: any IncrementalStore, _ used: [Set<ObjectKey>]) throws {
      let model = ConformanceModel.general, metadata = try store.open(model: model)
      lines.append(metadata.identity.storeUUID)
      lines += metadata.userInfo.map { "\($0): \($1)" }.sorted()
      let view = try store.beginRead(.latest)
      defer { view.end() }
      for entity in model.entities { try add(entity, of: store, in: view) }
      for (entity, used) in zip(model.entities, used) {
        let keys = try store.reserveKeys(entity: entity.index, count: 1)
        lines.append(used.isDisjoint(with: keys) ? "\(entity.name): a new key" : "\(entity.name): the used key \(keys[0])")
      }
    }

    private mutating func add(_ entity: ManagedObjectModel.Entity, of store: any IncrementalStore, in view: any ReadView) throws {
      let sink = CollectingSink()
      try store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, into: sink)
      let rows = sink.rows.sorted { $0.key < $1.key }
      lines += rows.map { "\(entity.name) \($0.key), version \($0.version): \($0.values)" }
      for relationship in entity.toManyRelationships {
        for row in rows {
          let request = RelationshipRequest(entity: entity.index, relationship: relationship.index, sources: [row.key])
          lines.append("\(entity.name).\(relationship.name) of \(row.key): \(try store.relationships(request, in: view).targets.sorted())")
        }
      }
    }

    func difference(_ expected: Answers) -> String {
      let changed = zip(lines, expected.lines).first { $0 != $1 }
      return changed.map { "\($0) instead of \($1)" } ?? "\(lines.count) answers instead of \(expected.lines.count)"
    }
  }
}
