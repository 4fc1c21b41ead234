import HoldfastStore

// Pairs of objects that can't be distinguished.
extension StructureMatching {
  /// How many objects may be read to refine colours after each pair.
  private static let maximumReads = 100_000

  /// Step 4: pairs the remaining objects of each colour, in key order.
  ///
  /// Among some hundred objects, colours are refined after each pair. Objects of one colour needn't be interchangeable, so a pair that makes
  /// others differ is replaced by another one, if there is a better one among the first few. Among more objects, those that are linked to
  /// both in the same way are paired, depth first. So the halves of two equal pairs of objects aren't exchanged.
  func pairSymmetricObjects() throws {
    let end = remainingReads - Self.maximumReads
    var triesOthers = true
    while remainingReads > max(end, 0), try pairTwoObjects(&triesOthers) {}
    if remainingReads <= 0 {
      // Refinement ended before it used these pairs.
      for (entity, first, second) in recentPairs { try pairLinked(from: linkedObjects(entity, first, second)) }
    }
    for entity in entitiesWithOwnersFirst { try forEachColour(of: entity) { try pairColour(entity, $0, $1) } }
  }

  /// The concrete entities, those first whose objects have links that their destinations can't see.
  private var entitiesWithOwnersFirst: [ManagedObjectModel.Entity] {
    let entities = model.entities.filter { !$0.isAbstract }
    return entities.filter { hasOneWayLinks($0) } + entities.filter { !hasOneWayLinks($0) }
  }

  /// The maximum number of objects that are tried as an object's partner.
  private static let maximumAttempts = 16

  /// Pairs two objects of any colour and refines the colours. Returns whether there are any.
  ///
  /// - Parameter triesOthers: Whether several partners are tried. False after none of them fitted: the graphs differ.
  private func pairTwoObjects(_ triesOthers: inout Bool) throws -> Bool {
    for entity in entitiesWithOwnersFirst {
      var found: (one: Int, others: [Int])?
      forEachColour(of: entity) { first, second in
        if found == nil, let one = first.first, !second.isEmpty { found = (one, second) }
      }
      guard let (one, others) = found else { continue }
      if triesOthers {
        for other in others.prefix(Self.maximumAttempts) where try attemptPair(entity, one, other) { return true }
        triesOthers = false
      }
      try pairAndRefine(entity, one, others[0])
      return true
    }
    return false
  }

  /// Calls a closure with the unpaired objects of each colour that are left in both stores, or in one.
  private func forEachColour(of entity: ManagedObjectModel.Entity, _ body: ([Int], [Int]) throws -> Void) rethrows {
    let elements = Side.allCases.map { side in
      unpaired(open[side.rawValue][entity.index], side, entity).map {
        HashGroups.Element(hash: colour(side, entity.rootIndex.rawValue, $0), rank: $0)
      }
    }
    try HashGroups.forEach(elements[0], elements[1]) { first, second, _ in try body(first, second) }
  }

  private func pairColour(_ entity: ManagedObjectModel.Entity, _ first: [Int], _ second: [Int]) throws {
    var (one, other) = (ChunkCursor(readers[0], entity, first), ChunkCursor(readers[1], entity, second))
    while true {
      while let rank = one.rank, !pairs.isUnpaired(.first, entity.rootIndex, rank) { one.advance() }
      while let rank = other.rank, !pairs.isUnpaired(.second, entity.rootIndex, rank) { other.advance() }
      guard let a = one.rank, let b = other.rank else { return }
      pair(entity, a, b)
      guard !entity.relationships.isEmpty || entity.attributes.contains(where: { $0.type == .objectID }) else { continue }
      let (chunk, index) = try one.loaded(), (otherChunk, otherIndex) = try other.loaded()
      try pairLinked(from: LinkedObjects(neighbours(.first, chunk, index), neighbours(.second, otherChunk, otherIndex)))
    }
  }

  private func linkedObjects(_ entity: ManagedObjectModel.Entity, _ first: Int, _ second: Int) throws -> LinkedObjects {
    LinkedObjects(
      try neighbours(.first, ObjectChunk(readers[0], entity, CollectionOfOne(first)), 0),
      try neighbours(.second, ObjectChunk(readers[1], entity, CollectionOfOne(second)), 0))
  }

  /// Pairs what is linked to two objects in the same way.
  private func pairLinked(from start: LinkedObjects) throws {
    var stack = [start]
    while var linked = stack.popLast() {
      guard let (first, second) = linked.next(pairs) else { continue }
      // Depth first: the new pair can decide how the others are paired.
      stack.append(linked)
      guard let entity = readers[0].entity(first.root, first.rank), readers[1].entity(second.root, second.rank)?.index == entity.index
      else { continue }
      pair(entity, first.rank, second.rank)
      stack.append(try linkedObjects(entity, first.rank, second.rank))
    }
  }

  /// The unpaired destinations of an object.
  private func neighbours(_ side: Side, _ chunk: ObjectChunk, _ index: Int) throws -> [Neighbour] {
    var found: [Neighbour] = []
    for (number, property) in chunk.entity.graphProperties.enumerated() {
      if case .attribute(let attribute) = property, attribute.type != .objectID { continue }
      guard case .objects(let root, let ranks, _) = try chunk.content(index, property) else { continue }
      for (position, rank) in ranks.enumerated() where pairs.isUnpaired(side, root, rank) && !isStray(side, root, rank) {
        found.append(
          Neighbour(property: number, colour: colour(side, root.rawValue, rank), position: position, root: root, rank: rank))
      }
    }
    return found.sorted()
  }
}

/// An unpaired object that is linked to another one.
private struct Neighbour: Comparable {
  var property: Int
  var colour: UInt64
  var position: Int
  var root: EntityIndex
  var rank: Int

  static func < (a: Neighbour, b: Neighbour) -> Bool {
    (a.property, a.colour, a.position) < (b.property, b.colour, b.position)
  }

  /// The order of links that aren't distinguished.
  func precedes(_ other: Neighbour) -> Bool { (property, colour) < (other.property, other.colour) }
}

/// The unpaired objects that are linked to the two objects of a pair.
private struct LinkedObjects {
  private let first: [Neighbour]
  private let second: [Neighbour]
  private var left = 0
  private var right = 0

  init(_ first: [Neighbour], _ second: [Neighbour]) { (self.first, self.second) = (first, second) }

  /// The next two objects that aren't paired, and are linked in the same way.
  mutating func next(_ pairs: ObjectPairs) -> (Neighbour, Neighbour)? {
    while left < first.count && right < second.count {
      let (one, other) = (first[left], second[right])
      if !pairs.isUnpaired(.first, one.root, one.rank) || one.precedes(other) {
        left += 1
      } else if !pairs.isUnpaired(.second, other.root, other.rank) || other.precedes(one) {
        right += 1
      } else {
        (left, right) = (left + 1, right + 1)
        return (one, other)
      }
    }
    return nil
  }
}

/// Reads objects of a list in chunks, as far as they are needed.
private struct ChunkCursor {
  private let reader: GraphReader
  private let entity: ManagedObjectModel.Entity
  private let ranks: [Int]
  private var index = 0
  private var chunk: (ObjectChunk, start: Int)?

  init(_ reader: GraphReader, _ entity: ManagedObjectModel.Entity, _ ranks: [Int]) {
    (self.reader, self.entity, self.ranks) = (reader, entity, ranks)
  }

  var rank: Int? { index < ranks.count ? ranks[index] : nil }

  mutating func advance() { index += 1 }

  /// The chunk with the current object, and its index there.
  mutating func loaded() throws -> (ObjectChunk, Int) {
    if let (chunk, start) = chunk, index < start + chunk.keys.count { return (chunk, index - start) }
    let chunk = try ObjectChunk(reader, entity, ranks[index..<min(index + ObjectChunk.maximumCount, ranks.count)])
    self.chunk = (chunk, index)
    return (chunk, 0)
  }
}
