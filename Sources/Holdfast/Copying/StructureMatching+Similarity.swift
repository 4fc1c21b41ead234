import HoldfastStore

// Pairs of objects that aren't equal, but differ in little.
extension StructureMatching {
  /// Steps 2 and 5: pairs objects of the same entity that differ in one property, and then those that share most of them.
  ///
  /// A pair needs a reason: an equal value, or a link to paired objects. If several objects have the same reasons, they need two of them,
  /// and are paired by key order.
  ///
  /// - Returns: The number of pairs.
  @discardableResult func pairSimilarObjects() throws -> Int {
    var count = 0
    for entity in model.entities where !entity.isAbstract {
      if Side.allCases.contains(where: { candidates($0, entity).isEmpty }) { continue }
      let numbers = entity.graphProperties.enumerated().filter { !$1.isDerived }.map(\.offset)
      for number in numbers { count += try pairDiffering(entity, number) }
      for number in numbers { count += try pairSharing(entity, number) }
    }
    return count
  }

  /// Pairs objects that differ in one property.
  private func pairDiffering(_ entity: ManagedObjectModel.Entity, _ number: Int) throws -> Int {
    try pairEqual(entity) { traits in
      var hash: UInt64 = 0, reasonCount = 0
      for (other, trait) in traits.enumerated() where other != number {
        hash &+= GraphHash.mixed(other, trait.hash)
        if trait.isReason { reasonCount += 1 }
      }
      // The number of reasons is in the lowest bits.
      return reasonCount == 0 ? nil : hash & ~3 | UInt64(min(reasonCount, 2))
    } accept: { first, second, hash in
      hash & 3 >= 2 || (first.count == 1 && second.count == 1) ? Array(zip(first, second)) : []
    }
  }

  /// Pairs objects that share a value of a property that no other ones have, and half of all values.
  private func pairSharing(_ entity: ManagedObjectModel.Entity, _ number: Int) throws -> Int {
    var candidates: [(Int, Int)] = []
    _ = try pairEqual(entity) { traits in
      traits[number].isReason ? traits[number].hash : nil
    } accept: { first, second, _ in
      if first.count == 1 && second.count == 1 { candidates.append((first[0], second[0])) }
      return []
    }
    var count = 0
    for start in stride(from: 0, to: candidates.count, by: ObjectChunk.maximumCount) {
      let part = candidates[start..<min(start + ObjectChunk.maximumCount, candidates.count)]
      let first = try traits(.first, ObjectChunk(readers[0], entity, part.map(\.0)))
      let second = try traits(.second, ObjectChunk(readers[1], entity, part.map(\.1)))
      for (index, candidate) in part.enumerated() where Self.sharesHalf(first[index], second[index]) {
        pair(entity, candidate.0, candidate.1)
        count += 1
      }
    }
    if count > 0 { removePaired(entity) }
    return count
  }

  private static func sharesHalf(_ first: [Trait], _ second: [Trait]) -> Bool {
    var shared = 0, all = 0
    for (one, other) in zip(first, second) where one.hash != 0 || other.hash != 0 {
      all += 1
      if one.hash == other.hash && one.isReason { shared += 1 }
    }
    return 2 * shared >= all
  }

  /// Pairs unpaired objects with the same hash, which a closure returns.
  private func pairEqual(
    _ entity: ManagedObjectModel.Entity, _ hash: ([Trait]) -> UInt64?, accept: ([Int], [Int], UInt64) -> [(Int, Int)]
  ) throws -> Int {
    let candidates = Side.allCases.map { self.candidates($0, entity) }
    if candidates.contains(where: \.isEmpty) { return 0 }
    var found: [[HashGroups.Element]] = []
    for side in Side.allCases {
      var elements: [HashGroups.Element] = []
      countReads(candidates[side.rawValue].count)
      try readers[side.rawValue].forEachChunk(candidates[side.rawValue], of: entity) { chunk, range in
        for (rank, traits) in zip(candidates[side.rawValue][range], try traits(side, chunk)) {
          if let hash = hash(traits) { elements.append(HashGroups.Element(hash: hash, rank: rank)) }
        }
      }
      found.append(elements)
    }
    var count = 0
    HashGroups.forEach(found[0], found[1]) { first, second, hash in
      for (one, other) in accept(first, second, hash) {
        pair(entity, one, other)
        count += 1
      }
    }
    if count > 0 { removePaired(entity) }
    return count
  }

  /// The objects without an equal one.
  private func candidates(_ side: Side, _ entity: ManagedObjectModel.Entity) -> [Int] {
    let others = open[side.rawValue][entity.index].filter { hasOtherLinks(side, entity.rootIndex, $0) }
    return unpaired((strays[side.rawValue][entity.index] + others).sorted(), side, entity)
  }

  // MARK: Traits

  /// A property of one object.
  private struct Trait {
    /// The hash of the value or destinations; 0 if there are none.
    var hash: UInt64
    /// Whether it can identify an object: a value, or a link to paired objects.
    var isReason: Bool
  }

  /// The properties of each object.
  private func traits(_ side: Side, _ chunk: ObjectChunk) throws -> [[Trait]] {
    let properties = chunk.entity.graphProperties
    return try chunk.keys.indices.map { index in
      try properties.map { property in
        if property.isDerived { return Trait(hash: 0, isReason: false) }
        let content = try chunk.content(index, property)
        let hash = GraphHash.of(content) { colour(side, $0, $1) }
        guard case .objects(let root, let ranks, _) = content else { return Trait(hash: hash, isReason: hash != 0) }
        return Trait(hash: hash, isReason: ranks.contains { pairs.partner(side, root, $0) != nil })
      }
    }
  }
}
