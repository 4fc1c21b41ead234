/// One state in which a power loss may have left a ``SimulatedFileSystem``.
public struct CrashState: CustomStringConvertible {
  /// The disk as it is found when the power is back. Durable, without locks or open files, and the test's own.
  public let fileSystem: SimulatedFileSystem
  /// The last moment before the power loss that the test had marked; nil when there was none.
  public let lastMark: Int?
  /// How many of the recorded events came before the power loss.
  public let eventCount: Int
  let losses: [(change: DiskChange, outcome: CrashOutcome)]

  /// What became of the changes that were not durable.
  public var description: String {
    let changes = losses.map { "\($0.change) is \($0.outcome)" }
    return "power loss after \(eventCount) events\(lastMark.map { ", \($0) marked" } ?? ""): " + changes.joined(separator: "; ")
  }
}

/// How many crash states were looked at.
public struct CrashSummary: Sendable, Hashable {
  /// How many.
  public var stateCount: Int
  /// Whether those were all there are.
  public var isExhaustive: Bool
  /// Repeats the same states when it is given again.
  public var seed: UInt64

  /// Makes a summary.
  public init(stateCount: Int, isExhaustive: Bool, seed: UInt64) {
    self.stateCount = stateCount
    self.isExhaustive = isExhaustive
    self.seed = seed
  }
}

/// What happened to a disk since a moment at which all of it was durable.
struct CrashRecording: Sendable {
  enum Event: Sendable {
    case change(DiskChange)
    case synchronized(UInt64)
    case failedToSynchronize(UInt64)
    case synchronizedFolder(String)
    case mark(Int)
  }

  let base: SimulatedDisk
  var events: [Event] = []

  init(base: SimulatedDisk) { self.base = base }

  /// The moments of a power loss: after each number of events.
  var moments: ClosedRange<Int> { 0...events.count }

  /// For each event, the moment from which on it is durable; nil when it never is, or is no change.
  func durableMoments() -> [Int?] {
    events.indices.map { place in
      guard case .change(let change) = events[place] else { return nil }
      return durableMoment(of: change, at: place)
    }
  }

  private func durableMoment(of change: DiskChange, at place: Int) -> Int? {
    for later in place..<events.count {
      switch (events[later], change.contentsOf) {
      case (.synchronized(let file), let contents?) where file == contents: return later + 1
      // Whatever follows: the system believes that the bytes are on the disk.
      case (.failedToSynchronize(let file), let contents?) where file == contents: return nil
      case (.synchronizedFolder(let folder), nil) where folder == change.folder: return later + 1
      default: continue
      }
    }
    return nil
  }

  /// What may be left of an event when power is lost at a moment: all of it if it is durable by then, or no change.
  func outcomes(of place: Int, at moment: Int, durableFrom: Int?) -> [CrashOutcome] {
    guard case .change(let change) = events[place], durableFrom.map({ moment < $0 }) ?? true else { return [.present] }
    return change.outcomes
  }

  /// The disk after a power loss.
  func state(before moment: Int, _ outcomes: [CrashOutcome], _ possible: [[CrashOutcome]], _ random: inout DiskRandom) -> CrashState {
    var disk = base
    var mark: Int?
    var losses: [(DiskChange, CrashOutcome)] = []
    for place in 0..<moment {
      switch events[place] {
      case .change(let change):
        disk.apply(change, as: outcomes[place], &random)
        if possible[place].count > 1 { losses.append((change, outcomes[place])) }
      case .mark(let number): mark = number
      default: break
      }
    }
    return CrashState(fileSystem: SimulatedFileSystem(disk), lastMark: mark, eventCount: moment, losses: losses)
  }
}

/// Goes through the states that a power loss may leave: all of them when there are few enough, otherwise a sample.
struct CrashEnumerator {
  private static let mostStates = 1 << 14

  private let recording: CrashRecording
  private let seed: UInt64
  private let sampleSize: Int
  private let durableMoments: [Int?]

  init(_ recording: CrashRecording, seed: UInt64, sampleSize: Int) {
    self.recording = recording
    self.seed = seed
    self.sampleSize = sampleSize
    durableMoments = recording.durableMoments()
  }

  func run(_ body: (CrashState) throws -> Void) rethrows -> CrashSummary {
    let isExhaustive = stateCount <= min(Self.mostStates, sampleSize)
    var random = DiskRandom(seed: seed)
    let count = try isExhaustive ? all(&random, body) : sample(&random, body)
    return CrashSummary(stateCount: count, isExhaustive: isExhaustive, seed: seed)
  }

  /// What may be left of each event before a moment.
  private func outcomes(at moment: Int) -> [[CrashOutcome]] {
    (0..<moment).map { recording.outcomes(of: $0, at: moment, durableFrom: durableMoments[$0]) }
  }

  /// How many states there are, or some number above the limit.
  private var stateCount: Int {
    var sum = 0
    for moment in recording.moments {
      var product = 1
      for list in outcomes(at: moment) where product <= Self.mostStates { product *= list.count }
      sum += product
      if sum > Self.mostStates { break }
    }
    return sum
  }

  private func all(_ random: inout DiskRandom, _ body: (CrashState) throws -> Void) rethrows -> Int {
    var count = 0
    for moment in recording.moments {
      let possible = outcomes(at: moment)
      var digits = possible.map { _ in 0 }
      repeat {
        let chosen = zip(possible, digits).map { $0[$1] }
        try body(recording.state(before: moment, chosen, possible, &random))
        count += 1
      } while Self.advance(&digits, possible)
    }
    return count
  }

  /// Counts on, one list a digit; false after the last combination.
  private static func advance(_ digits: inout [Int], _ possible: [[CrashOutcome]]) -> Bool {
    for place in digits.indices {
      digits[place] += 1
      if digits[place] < possible[place].count { return true }
      digits[place] = 0
    }
    return false
  }

  private func sample(_ random: inout DiskRandom, _ body: (CrashState) throws -> Void) rethrows -> Int {
    for _ in 0..<sampleSize {
      let moment = Int.random(in: recording.moments, using: &random)
      let possible = outcomes(at: moment)
      let chosen = possible.map { $0[Int.random(in: $0.indices, using: &random)] }
      try body(recording.state(before: moment, chosen, possible, &random))
    }
    return sampleSize
  }
}
