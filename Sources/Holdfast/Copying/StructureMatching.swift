import HoldfastStore

/// Finds each object's partner by its values and links.
///
/// Every object has a colour, a hash. Objects with equal colours haven't been distinguished yet. Steps:
///
/// 1. Objects get the colours of their values.
/// 2. Objects whose colour no object of the other store has are *strays*. Those that differ from one object in little are paired with it.
/// 3. Colours are refined by the colours of linked objects, until no colour splits. A colour of one object in each store makes a pair. Steps
///    2 and 3 are repeated while they find similar objects.
/// 4. The remaining objects of a colour are symmetric. One is paired with any other one, then colours are refined again, and so on.
/// 5. Step 2 is repeated with everything that is left.
///
/// A change hardly spreads: the colour of a stray depends on its entity only, and objects whose refined colours exist in one store only stay
/// together with those of the other store.
///
/// Colours decide which objects are compared. The comparison itself uses the values and links, so equal hashes of different objects can't
/// make graphs equal.
final class StructureMatching {
  /// What a colour means, in its lowest two bits.
  private enum Mark {
    /// Objects of both stores have the same values and links, as far as they have been refined.
    static let alike: UInt64 = 0
    /// Objects of both stores have the same values, and other links.
    static let otherLinks: UInt64 = 1
    /// The object is a stray, or the other store doesn't have its key.
    static let stray: UInt64 = 2
    /// The object is paired.
    static let paired: UInt64 = 3
    static let all: UInt64 = 3
  }

  let readers: [GraphReader]
  let pairs: ObjectPairs
  /// The colours, by side, root entity and rank.
  private var colours: [[[UInt64]]]
  /// The ranks of the objects that have a colour of both stores, by side and entity.
  var open: [[[Int]]]
  /// The ranks of the objects that had a colour of one store only, by side and entity.
  private(set) var strays: [[[Int]]]
  /// What the owners of one-way links add to the colours of the destinations, by side, root entity and rank.
  private var incoming: [[[UInt64]]] = []
  /// The ranks of the objects whose colours are final, and haven't been added to their destinations, by side and entity.
  private var settled: [[[Int]]]
  /// The properties that add to the colours of their destinations, by entity.
  private let oneWay: [[(index: Int, property: GraphProperty)]]
  /// The pairs that the last refinement found.
  private(set) var recentPairs: [(entity: ManagedObjectModel.Entity, first: Int, second: Int)] = []
  /// Whether pairs are added to ``recentPairs``.
  private var isRefining = false
  /// The number of objects whose refined colours existed in their store only, so far.
  private(set) var mismatchCount = 0
  /// How many objects may still be read to refine colours. If there are none left, step 4 does the rest.
  private(set) var remainingReads: Int

  var model: ManagedObjectModel { readers[0].model }
  var concreteEntities: [ManagedObjectModel.Entity] { model.entities.filter { !$0.isAbstract } }

  init(_ first: GraphReader, _ second: GraphReader, _ pairs: ObjectPairs) {
    (readers, self.pairs) = ([first, second], pairs)
    let none = [first, second].map { $0.model.entities.map { _ in [Int]() } }
    (open, strays, settled) = (none, none, none)
    colours = [first, second].map { $0.keys.map { Array(repeating: 0, count: $0.count) } }
    oneWay = first.model.entities.map { entity in
      entity.graphProperties.enumerated().filter { !entity.isAbstract && $1.isOneWay }.map { (index: $0, property: $1) }
    }
    if oneWay.contains(where: { !$0.isEmpty }) { incoming = colours }
    remainingReads = 100_000 + 64 * (first.objectCount + second.objectCount)
  }

  func run() throws {
    guard concreteEntities.contains(where: { canHavePairs($0) }) else { return }
    try colourByValues()
    try pairSimilarObjects()
    try refine()
    while try pairSimilarObjects() > 0 && remainingReads > 0 { try refine() }
    try pairSymmetricObjects()
    setAllStray()
    while try pairSimilarObjects() > 0 && remainingReads > 0 {}
  }

  /// Whether both stores have objects without a partner.
  private func canHavePairs(_ entity: ManagedObjectModel.Entity) -> Bool {
    Side.allCases.allSatisfy { side in
      readers[side.rawValue].ranks(of: entity).contains { pairs.isUnpaired(side, entity.rootIndex, $0) }
    }
  }

  /// Step 5: what is left of colours that one store has more often.
  private func setAllStray() {
    for entity in concreteEntities {
      for side in Side.allCases {
        for rank in unpaired(open[side.rawValue][entity.index], side, entity) { setStray(side, entity, rank) }
        open[side.rawValue][entity.index] = []
      }
    }
  }

  // MARK: Colours

  func colour(_ side: Side, _ root: Int, _ rank: Int) -> UInt64 { colours[side.rawValue][root][rank] }

  /// Whether an object has the same values as one of the other store, but not the same links.
  func hasOtherLinks(_ side: Side, _ root: EntityIndex, _ rank: Int) -> Bool {
    colour(side, root.rawValue, rank) & Mark.all == Mark.otherLinks
  }

  func isStray(_ side: Side, _ root: EntityIndex, _ rank: Int) -> Bool {
    colour(side, root.rawValue, rank) & Mark.all == Mark.stray
  }

  func hasOneWayLinks(_ entity: ManagedObjectModel.Entity) -> Bool { !oneWay[entity.index].isEmpty }

  /// Counts objects that are read to find similar ones.
  func countReads(_ count: Int) { remainingReads -= count }

  private func set(_ colour: UInt64, _ mark: UInt64, _ side: Side, _ root: EntityIndex, _ rank: Int) {
    colours[side.rawValue][root][rank] = colour & ~Mark.all | mark
  }

  func pair(_ entity: ManagedObjectModel.Entity, _ first: Int, _ second: Int) {
    pairs.pair(entity.rootIndex, first, second)
    colourPair(entity, first, second)
  }

  func colourPair(_ entity: ManagedObjectModel.Entity, _ first: Int, _ second: Int) {
    let root = entity.rootIndex, colour = GraphHash.mixed(GraphHash.mixed(-1 - root.rawValue, 0), UInt64(first))
    for (side, rank) in [(Side.first, first), (.second, second)] {
      set(colour, Mark.paired, side, root, rank)
      addSettled(side, entity, rank)
    }
  }

  private func addSettled(_ side: Side, _ entity: ManagedObjectModel.Entity, _ rank: Int) {
    if !oneWay[entity.index].isEmpty { settled[side.rawValue][entity.index].append(rank) }
  }

  func colourSingle(_ side: Side, _ entity: ManagedObjectModel.Entity, _ rank: Int) {
    set(GraphHash.mixed(entity.index.rawValue, 5), Mark.stray, side, entity.rootIndex, rank)
    addSettled(side, entity, rank)
  }

  private func setStray(_ side: Side, _ entity: ManagedObjectModel.Entity, _ rank: Int) {
    strays[side.rawValue][entity.index].append(rank)
    colourSingle(side, entity, rank)
  }

  // MARK: Refinement

  /// Step 3.
  func refine() throws {
    while open.joined().contains(where: { !$0.isEmpty }), remainingReads > 0 {
      if try !refineOnce() { return }
    }
  }

  /// Refines all colours by those of linked objects, and returns whether a colour was split.
  private func refineOnce() throws -> Bool {
    try addToDestinations()
    (recentPairs, isRefining) = ([], true)
    defer { isRefining = false }
    // All colours are computed from the former ones.
    let refined = try Side.allCases.map { side in
      try model.entities.map { entity in try refinedColours(side, entity) }
    }
    var hasSplit = false
    for entity in concreteEntities where !(open[0][entity.index].isEmpty && open[1][entity.index].isEmpty) {
      let former = Side.allCases.map { side in open[side.rawValue][entity.index].map { colour(side, entity.rootIndex.rawValue, $0) } }
      if split(entity, refined.map { $0[entity.index] }, former) { hasSplit = true }
    }
    return hasSplit
  }

  private func refinedColours(_ side: Side, _ entity: ManagedObjectModel.Entity) throws -> [UInt64] {
    let ranks = open[side.rawValue][entity.index], properties = entity.graphProperties
    var refined: [UInt64] = []
    refined.reserveCapacity(ranks.count)
    remainingReads -= ranks.count
    try readers[side.rawValue].forEachChunk(ranks, of: entity) { chunk, range in
      for index in range {
        var links: UInt64 = incoming.isEmpty ? 0 : incoming[side.rawValue][entity.rootIndex][ranks[index]]
        for (number, property) in properties.enumerated() {
          let content = try linkContent(chunk, index - range.lowerBound, property)
          links &+= GraphHash.mixed(number, GraphHash.of(content) { colour(side, $0, $1) })
        }
        refined.append(GraphHash.mixed(colour(side, entity.rootIndex.rawValue, ranks[index]), links))
      }
    }
    return refined
  }

  /// The destinations of a property. Values aren't read.
  private func linkContent(_ chunk: ObjectChunk, _ index: Int, _ property: GraphProperty) throws -> GraphProperty.Content {
    if case .attribute(let attribute) = property, attribute.type != .objectID { return .none }
    let content = try chunk.content(index, property)
    if case .objects = content { return content }
    return .none
  }

  /// Adds the colours of the owners of one-way links to the destinations.
  ///
  /// Final colours are added once: they are part of all later colours of the destination.
  private func addToDestinations() throws {
    if incoming.isEmpty { return }
    incoming = incoming.map { $0.map { Array(repeating: 0, count: $0.count) } }
    for side in Side.allCases {
      for entity in concreteEntities {
        let properties = oneWay[entity.index].filter { canRefineDestinations(of: $0.property) }
        if properties.isEmpty { continue }
        let owners = open[side.rawValue][entity.index] + settled[side.rawValue][entity.index]
        try readers[side.rawValue].forEachChunk(owners, of: entity) { chunk, range in
          for index in range {
            for (number, property) in properties {
              guard case .objects(let root, let ranks, let isOrdered) = try linkContent(chunk, index - range.lowerBound, property)
              else { continue }
              let link = GraphHash.mixed(
                GraphHash.mixed(entity.index.rawValue, UInt64(number)), colour(side, entity.rootIndex.rawValue, owners[index]))
              for (position, rank) in ranks.enumerated() {
                incoming[side.rawValue][root][rank] &+= GraphHash.mixed(link, isOrdered ? UInt64(position) : 0)
              }
            }
          }
        }
      }
    }
    settled = settled.map { $0.map { _ in [] } }
  }

  private func canRefineDestinations(of property: GraphProperty) -> Bool {
    switch property {
    case .attribute: true
    case .toOne(let relationship), .toMany(let relationship):
      model.destination(of: relationship).concreteIndexes.contains { !open[0][$0].isEmpty }
    }
  }

  // MARK: Splitting

  private struct Member {
    var former: UInt64
    var refined: UInt64
    var side: Side
    var rank: Int
  }

  /// Gives an entity's open objects their refined colours, and returns whether one of the former colours was split.
  ///
  /// An object whose refined colour exists in its store only stays together with those of the other store to which the same happens. If
  /// there are none, it becomes a stray.
  ///
  /// - Parameter former: The former colours; nil for the first ones.
  @discardableResult func split(
    _ entity: ManagedObjectModel.Entity, _ refined: [[UInt64]], _ former: [[UInt64]]?
  ) -> Bool {
    var members: [Member] = []
    for side in Side.allCases {
      members += open[side.rawValue][entity.index].enumerated().map { index, rank in
        Member(former: former?[side.rawValue][index] ?? 0, refined: refined[side.rawValue][index] & ~Mark.all, side: side, rank: rank)
      }
      open[side.rawValue][entity.index] = []
    }
    members.sort { ($0.former, $0.refined, $0.side.rawValue, $0.rank) < ($1.former, $1.refined, $1.side.rawValue, $1.rank) }
    var hasSplit = false, start = 0
    while start < members.count {
      let end = members[start...].firstIndex { $0.former != members[start].former } ?? members.count
      if splitColour(members[start..<end], entity, isFirst: former == nil) { hasSplit = true }
      start = end
    }
    for side in Side.allCases { open[side.rawValue][entity.index].sort() }
    return hasSplit
  }

  /// Gives the objects of one former colour their refined colours.
  private func splitColour(_ members: ArraySlice<Member>, _ entity: ManagedObjectModel.Entity, isFirst: Bool) -> Bool {
    var rest: ArraySlice<Member> = [], start = members.startIndex, colourCount = 0, kept = 0
    while start < members.endIndex {
      let end = members[start...].firstIndex { $0.refined != members[start].refined } ?? members.endIndex
      let group = members[start..<end]
      if group.first?.side == group.last?.side {
        rest += group
      } else {
        kept += keep(group, members[start].refined, Mark.alike, entity)
        colourCount += 1
      }
      start = end
    }
    if !rest.isEmpty {
      mismatchCount += rest.count
      let firstCount = rest.count { $0.side == .first }
      if firstCount == 0 || firstCount == rest.count || isFirst {
        for member in rest { setStray(member.side, entity, member.rank) }
      } else {
        kept += keep(rest, GraphHash.mixed(rest.first?.former ?? 0, 7), Mark.otherLinks, entity)
        colourCount += 1
      }
    }
    return colourCount > 1 || kept < members.count
  }

  /// Pairs the only two objects of a colour, or gives several the colour, and returns how many remain open.
  private func keep(_ group: ArraySlice<Member>, _ colour: UInt64, _ mark: UInt64, _ entity: ManagedObjectModel.Entity) -> Int {
    if group.count == 2, let a = group.first, let b = group.last, a.side != b.side {
      let (first, second) = a.side == .first ? (a.rank, b.rank) : (b.rank, a.rank)
      pair(entity, first, second)
      if isRefining { recentPairs.append((entity, first, second)) }
      return 0
    }
    for member in group {
      set(colour, mark, member.side, entity.rootIndex, member.rank)
      open[member.side.rawValue][entity.index].append(member.rank)
    }
    return group.count
  }

  // MARK: Attempts

  /// What an attempt to pair two objects changes.
  private struct State {
    let colours, incoming: [[[UInt64]]]
    let open, strays, settled: [[[Int]]]
    let partners: [[[Int]]]
    let mismatchCount: Int
  }

  /// Pairs two objects and refines the colours. Reverts that if objects that had the same colour are linked differently then.
  ///
  /// - Returns: Whether the objects are paired.
  func attemptPair(_ entity: ManagedObjectModel.Entity, _ first: Int, _ second: Int) throws -> Bool {
    let state = State(
      colours: colours, incoming: incoming, open: open, strays: strays, settled: settled, partners: pairs.partners,
      mismatchCount: mismatchCount)
    try pairAndRefine(entity, first, second)
    if mismatchCount == state.mismatchCount { return true }
    (colours, incoming, open, strays, settled) = (state.colours, state.incoming, state.open, state.strays, state.settled)
    pairs.restore(state.partners)
    mismatchCount = state.mismatchCount
    return false
  }

  /// Pairs two objects and refines the colours.
  func pairAndRefine(_ entity: ManagedObjectModel.Entity, _ first: Int, _ second: Int) throws {
    pair(entity, first, second)
    removePaired(entity)
    try refine()
  }

  // MARK: Lists for the other steps

  /// The ranks of objects that have no partner yet, of those in a list.
  func unpaired(_ ranks: [Int], _ side: Side, _ entity: ManagedObjectModel.Entity) -> [Int] {
    ranks.filter { pairs.isUnpaired(side, entity.rootIndex, $0) }
  }

  /// Removes paired objects from the lists of an entity.
  func removePaired(_ entity: ManagedObjectModel.Entity) {
    for side in Side.allCases {
      open[side.rawValue][entity.index] = unpaired(open[side.rawValue][entity.index], side, entity)
      strays[side.rawValue][entity.index] = unpaired(strays[side.rawValue][entity.index], side, entity)
    }
  }
}
