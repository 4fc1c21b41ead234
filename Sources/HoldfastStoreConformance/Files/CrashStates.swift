/// One state in which a power loss can leave a ``SimulatedFileSystem``.
public struct CrashState: CustomStringConvertible {
  /// The disk after the power loss. All of it is durable, and no file is open or locked. The test can modify it.
  public let fileSystem: SimulatedFileSystem
  /// The last mark that the test set before the power loss, or nil if there was none.
  public let lastMark: Int?
  /// The number of recorded events before the power loss.
  public let eventCount: Int
  let losses: [(change: DiskChange, outcome: CrashOutcome)]

  /// The outcome of each change that wasn't durable.
  public var description: String {
    let changes = losses.map { "\($0.change) is \($0.outcome)" }
    return "power loss after \(eventCount) events\(lastMark.map { ", last mark \($0)" } ?? ""): " + changes.joined(separator: "; ")
  }
}

/// The number of crash states that a test examined.
public struct CrashSummary: Sendable, Hashable {
  /// The number of states.
  public var stateCount: Int
  /// Whether the states were all possible ones rather than a sample.
  public var isExhaustive: Bool
  /// The seed that reproduces the same states.
  public var seed: UInt64

  /// Creates a summary.
  public init(stateCount: Int, isExhaustive: Bool, seed: UInt64) {
    self.stateCount = stateCount
    self.isExhaustive = isExhaustive
    self.seed = seed
  }
}

/// The events on a disk since a moment when everything was durable.
struct CrashRecording: Sendable {
  enum Event: Sendable {
    case change(DiskChange)
    /// Changes by another program, which are durable at once.
    case durableChanges([DiskChange])
    case synchronized(UInt64)
    case failedToSynchronize(UInt64)
    case synchronizedFolder(String)
    case mark(Int)
  }

  let base: SimulatedDisk
  var events: [Event] = []

  init(base: SimulatedDisk) { self.base = base }

  /// The possible moments of a power loss: after each number of events.
  var moments: ClosedRange<Int> { 0...events.count }

  /// For each event, the moment from which it is durable; nil if it never is, or isn't a change.
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
      // A later synchronization doesn't help: the system assumes that the bytes are already on the disk.
      case (.failedToSynchronize(let file), let contents?) where file == contents: return nil
      case (.synchronizedFolder(let folder), nil) where folder == change.folder: return later + 1
      default: continue
      }
    }
    return nil
  }

  /// The possible outcomes of an event if power is lost at a moment. A durable change is always present.
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
      case .durableChanges(let changes): for change in changes { disk.apply(change) }
      case .mark(let number): mark = number
      default: break
      }
    }
    return CrashState(fileSystem: SimulatedFileSystem(disk), lastMark: mark, eventCount: moment, losses: losses)
  }
}

/// Enumerates the states that a power loss can leave: all of them if there are few enough, otherwise a sample.
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

  /// The possible outcomes of each event before a moment.
  private func outcomes(at moment: Int) -> [[CrashOutcome]] {
    (0..<moment).map { recording.outcomes(of: $0, at: moment, durableFrom: durableMoments[$0]) }
  }

  /// The number of states. If it exceeds the limit, any number above the limit.
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

  /// Advances to the next combination. Each digit is an index in one of the lists. Returns false after the last combination.
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
