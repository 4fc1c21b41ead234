/// One figure of one round of a comparison, as it was measured.
public struct Sample: Hashable, Sendable {
  /// The store.
  public var store: String
  /// What it was measured with.
  public var input: MeasurementInput
  /// The round, from 1; 0 where requests and statements were counted, whose times mean nothing.
  public var round: Int
  /// What the measuring process reported.
  public var figure: Figure
  /// The bytes of the store's files after the workload; nil where it has none.
  public var fileBytes: Int64?
  /// Seconds from the start of the measuring process to its end, input included.
  public var processSeconds: Double

  /// Makes a sample.
  public init(store: String, input: MeasurementInput, round: Int, figure: Figure, fileBytes: Int64? = nil, processSeconds: Double = 0) {
    self.store = store
    self.input = input
    self.round = round
    self.figure = figure
    self.fileBytes = fileBytes
    self.processSeconds = processSeconds
  }

  /// Whether its times and its memory mean something: nothing was counted.
  var isTimed: Bool { round > 0 }
}

extension Sample: Encodable {
  private enum CodingKeys: String, CodingKey {
    case store, input, phase, round, wallSeconds, cpuSeconds, check, residentDeltaKilobytes, peakResidentKilobytes, heapDeltaBytes
    case fileBytes, requests, statements, processSeconds
  }

  /// Writes one flat object; `check` is a string because many readers of JSON keep only 53 bits of a number.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(store, forKey: .store)
    try container.encode(input, forKey: .input)
    try container.encode(figure.workload, forKey: .phase)
    try container.encode(round, forKey: .round)
    try container.encode(figure.seconds, forKey: .wallSeconds)
    try container.encode(figure.cpuSeconds, forKey: .cpuSeconds)
    try container.encode(String(figure.check), forKey: .check)
    try container.encode(figure.residentDeltaKilobytes, forKey: .residentDeltaKilobytes)
    try container.encode(figure.peakKilobytes, forKey: .peakResidentKilobytes)
    try container.encode(figure.heapDeltaBytes, forKey: .heapDeltaBytes)
    try container.encodeIfPresent(fileBytes, forKey: .fileBytes)
    try container.encodeIfPresent(figure.requests, forKey: .requests)
    try container.encodeIfPresent(figure.statements, forKey: .statements)
    try container.encode(processSeconds, forKey: .processSeconds)
  }
}
