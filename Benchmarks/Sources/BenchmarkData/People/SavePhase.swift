/// Saves of different sizes. The raw value is the name in results.
public enum SavePhase: String, CaseIterable, Sendable {
  /// Twenty saves of one changed person each.
  case ones = "S1"
  /// A save of ten changed persons.
  case ten = "S10"
  /// A save of a hundred changed persons.
  case hundred = "S100"
  /// A save of a thousand changed persons.
  case thousand = "S1000"

  /// The number of saves.
  public var saveCount: Int { self == .ones ? 20 : 1 }

  /// The positions of the changed persons in the sample. They differ between phases.
  public var places: Range<Int> {
    switch self {
    case .ones: 0..<20
    case .ten: 20..<30
    case .hundred: 30..<130
    case .thousand: 130..<1130
    }
  }

  /// The phases for which there are enough people.
  public static func phases(of count: Int) -> [SavePhase] { allCases.filter { $0.places.upperBound <= count } }
}

extension PeopleDataset {
  /// The expected answer of a phase: for each changed person, 1 plus the new age, which is one year more.
  public func expected(_ phase: SavePhase) -> UInt64 {
    phase.places.reduce(0) { sum, place in
      let index = Int(Self.sampleID(place, of: count) - Self.id(at: 0)) / 7
      return sum + 2 + UInt64(self[index].age)
    }
  }
}
