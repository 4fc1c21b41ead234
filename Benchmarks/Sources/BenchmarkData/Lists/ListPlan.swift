/// The measurements on ordered lists: a list of objects with three links each, and deterministic pseudorandom moves.
public struct ListPlan: Hashable, Sendable {
  /// The number of moves before the first save.
  public static let moveCount = 10_000

  /// The number of objects in the list.
  public let count: Int

  /// Creates a plan for a list of at least two objects.
  public init(count: Int) { self.count = max(2, count) }

  /// Moves the object at one position to another.
  public struct Move: Hashable, Sendable {
    /// The position before the move.
    public var source: Int
    /// The position after the move.
    public var target: Int
  }

  /// The move with a number. The last one, ``moveCount``, is saved separately.
  public func move(_ number: Int) -> Move {
    Move(source: Int(random(number, 1) % UInt64(count)), target: Int(random(number, 2) % UInt64(count)))
  }

  /// The numbers of the objects that an object is linked to.
  public func links(of number: Int) -> [Int] { [1, 7, 31].map { (number + $0) % count } }

  /// The checksum of an order. It depends on the position of each number.
  public static func checksum(_ numbers: some Sequence<Int64>) -> UInt64 {
    numbers.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64(bitPattern: $1)) &* 1_099_511_628_211 }
  }

  /// The expected answer of each phase.
  public func expected(_ phase: ListPhase) -> UInt64 {
    switch phase {
    case .make: UInt64(count)
    case .moves, .saveMoves: order(after: Self.moveCount)
    case .saveMove: order(after: Self.moveCount + 1)
    // No object is left.
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

  /// A deterministic pseudorandom number (the finalizer of SplitMix64).
  private func random(_ number: Int, _ field: UInt64) -> UInt64 {
    var bits = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ field &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return bits ^ bits >> 31
  }
}

/// The phases measured on ordered lists. The raw value is the name in results.
public enum ListPhase: String, CaseIterable, Sendable {
  /// Create all objects, add them to the list, link them, and save. Checksum: the number of objects.
  case make
  /// Perform ``ListPlan/moveCount`` moves. Checksum: the order.
  case moves
  /// Save the moves. Checksum: the order in another context.
  case saveMoves = "moves-save"
  /// Perform and save one more move. Checksum: the order in another context.
  case saveMove = "move-save"
  /// Delete the list with all of its objects, and save. Checksum: the number of remaining objects.
  case cascade
}
