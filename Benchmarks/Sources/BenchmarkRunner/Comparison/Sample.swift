/// A figure of one round of a comparison, as measured.
public struct Sample: Hashable, Sendable {
  /// The store.
  public var store: String
  /// The input of the measurement.
  public var input: MeasurementInput
  /// The number of people, packages or objects in a list.
  public var size: Int
  /// The round, from 1. Round 0 counts operations, and its times have no meaning.
  public var round: Int
  /// The figure that the measuring process reported.
  public var figure: Figure
  /// The size of the store's files after the workload, in bytes; nil if it has none.
  public var fileBytes: Int64?
  /// Seconds from the start of the measuring process to its end, including preparing the input.
  public var processSeconds: Double

  /// Creates a sample.
  public init(
    store: String, input: MeasurementInput, size: Int, round: Int, figure: Figure, fileBytes: Int64? = nil, processSeconds: Double = 0
  ) {
    self.store = store
    self.input = input
    self.size = size
    self.round = round
    self.figure = figure
    self.fileBytes = fileBytes
    self.processSeconds = processSeconds
  }

  /// Whether its times and memory are meaningful, because nothing was counted.
  var isTimed: Bool { round > 0 }
}

extension Sample: Codable {
  private enum CodingKeys: String, CodingKey {
    case store, input, size, phase, round, wallSeconds, cpuSeconds, check, residentDeltaKilobytes, peakResidentKilobytes, heapDeltaBytes
    case fileBytes, allocations, requests, statements, synchronizations, processSeconds
  }

  /// Encodes one flat object. `check` is a string, because many JSON readers keep only 53 bits of a number.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(store, forKey: .store)
    try container.encode(input, forKey: .input)
    try container.encode(size, forKey: .size)
    try container.encode(figure.workload, forKey: .phase)
    try container.encode(round, forKey: .round)
    try container.encode(figure.seconds, forKey: .wallSeconds)
    try container.encode(figure.cpuSeconds, forKey: .cpuSeconds)
    try container.encode(String(figure.check), forKey: .check)
    try container.encode(figure.residentDeltaKilobytes, forKey: .residentDeltaKilobytes)
    try container.encode(figure.peakKilobytes, forKey: .peakResidentKilobytes)
    try container.encode(figure.heapDeltaBytes, forKey: .heapDeltaBytes)
    try container.encodeIfPresent(fileBytes, forKey: .fileBytes)
    try container.encodeIfPresent(figure.allocations, forKey: .allocations)
    try container.encodeIfPresent(figure.requests, forKey: .requests)
    try container.encodeIfPresent(figure.statements, forKey: .statements)
    try container.encodeIfPresent(figure.synchronizations, forKey: .synchronizations)
    try container.encode(processSeconds, forKey: .processSeconds)
  }

  /// Decodes an object written by ``encode(to:)``.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func value<T: Decodable>(_ key: CodingKeys) throws -> T { try container.decode(T.self, forKey: key) }
    func optional<T: Decodable>(_ key: CodingKeys) throws -> T? { try container.decodeIfPresent(T.self, forKey: key) }
    guard let check = UInt64(try value(.check) as String) else {
      throw DecodingError.dataCorruptedError(forKey: .check, in: container, debugDescription: "The checksum isn't a decimal number.")
    }
    let figure = Figure(
      workload: try value(.phase), seconds: try value(.wallSeconds), cpuSeconds: try value(.cpuSeconds), check: check,
      residentDeltaKilobytes: try value(.residentDeltaKilobytes), peakKilobytes: try value(.peakResidentKilobytes),
      heapDeltaBytes: try value(.heapDeltaBytes), requests: try optional(.requests), statements: try optional(.statements),
      allocations: try optional(.allocations), synchronizations: try optional(.synchronizations))
    self.init(
      store: try value(.store), input: try value(.input), size: try value(.size), round: try value(.round), figure: figure,
      fileBytes: try optional(.fileBytes), processSeconds: try value(.processSeconds))
  }
}
