/// What is measured on ordered lists: one list of objects, each with three links to others, and moves by chance that are the same
/// on every machine.
public struct ListPlan: Hashable, Sendable {
  /// How often objects are moved before the first save.
  public static let moveCount = 10_000

  /// How many objects the list has.
  public let count: Int

  /// Plans a list; it has at least two objects.
  public init(count: Int) { self.count = max(2, count) }

  /// A move: the object at one position is taken out and put in at another.
  public struct Move: Hashable, Sendable {
    /// Where it is.
    public var source: Int
    /// Where it is afterwards.
    public var target: Int
  }

  /// The move with a number; the last, ``moveCount``, is the one that is saved alone.
  public func move(_ number: Int) -> Move {
    Move(source: Int(random(number, 1) % UInt64(count)), target: Int(random(number, 2) % UInt64(count)))
  }

  /// The objects that an object has links to, by number.
  public func links(of number: Int) -> [Int] { [1, 7, 31].map { (number + $0) % count } }

  /// What an order comes to: numbers at other positions give another value.
  public static func checksum(_ numbers: some Sequence<Int64>) -> UInt64 {
    numbers.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64(bitPattern: $1)) &* 1_099_511_628_211 }
  }

  /// The answer of each phase.
  public func expected(_ phase: ListPhase) -> UInt64 {
    switch phase {
    case .make: UInt64(count)
    case .moves, .saveMoves: order(after: Self.moveCount)
    case .saveMove: order(after: Self.moveCount + 1)
    // Nothing is left.
    case .cascade: 0
    }
  }

  private func order(after moves: Int) -> UInt64 {
    var numbers = (0..<Int64(count)).map { $0 }
    for number in 0..<moves {
      let move = move(number)
      numbers.insert(numbers.remove(at: move.source), at: move.target)
    }
    return Self.checksum(numbers)
  }

  /// Numbers that look like chance and are the same everywhere (the finaliser of SplitMix64).
  private func random(_ number: Int, _ field: UInt64) -> UInt64 {
    var bits = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ field &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return bits ^ bits >> 31
  }
}

/// What is measured on ordered lists; the raw value is the name in results.
public enum ListPhase: String, CaseIterable, Sendable {
  /// Make all objects, put them into the list, link them, and save. Checksum: the number of objects.
  case make
  /// ``ListPlan/moveCount`` moves. Checksum: the order.
  case moves
  /// The save of them. Checksum: the order that another context finds.
  case saveMoves = "moves-save"
  /// One more move, and its save. Checksum: the order that another context finds.
  case saveMove = "move-save"
  /// Delete the list with everything in it, and save. Checksum: the number of objects that are left.
  case cascade
}
