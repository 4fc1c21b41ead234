/// Compares the checksums of all stores with each other and, if the input has one, with the input.
///
/// Times are only comparable if stores return the same answers, so one wrong checksum makes a comparison fail.
public struct ChecksumLedger: Sendable {
  /// A store whose checksum differs from the reference.
  public struct Disagreement: Hashable, Sendable, CustomStringConvertible {
    /// The store with the other checksum.
    public let store: String
    /// The input of the measurement.
    public let input: MeasurementInput
    /// The number of objects.
    public let size: Int
    /// The name of the figure.
    public let phase: String
    /// The store's checksum.
    public let value: UInt64
    /// The source of the reference: "the input", or the name of a store.
    public let reference: String
    /// The checksum of the reference.
    public let referenceValue: UInt64

    /// The disagreement as one sentence.
    public var description: String {
      "The stores disagree in \(phase) on \(size) \(input.rawValue): \(store) returned \(value), and \(reference) has \(referenceValue)."
    }
  }

  private struct Key: Hashable {
    let input: MeasurementInput
    let size: Int
    let phase: String
  }

  /// The source and value of the reference for each input, size and phase.
  private var references: [Key: (name: String, value: UInt64)] = [:]
  /// Each disagreement once, in order of detection.
  public private(set) var disagreements: [Disagreement] = []

  /// Creates an empty ledger.
  public init() {}

  /// Sets the checksum that the input requires in a phase.
  public mutating func expect(_ value: UInt64, in phase: String, on input: MeasurementInput, size: Int) {
    references[Key(input: input, size: size, phase: phase)] = ("the input", value)
  }

  /// Records a store's checksum. If the input has none, the first store's checksum is the reference.
  public mutating func record(_ sample: Sample) {
    let phase = sample.figure.workload
    let key = Key(input: sample.input, size: sample.size, phase: phase)
    guard let reference = references[key] else {
      references[key] = (sample.store, sample.figure.check)
      return
    }
    guard reference.value != sample.figure.check else { return }
    let disagreement = Disagreement(
      store: sample.store, input: sample.input, size: sample.size, phase: phase, value: sample.figure.check, reference: reference.name,
      referenceValue: reference.value)
    if !disagreements.contains(disagreement) { disagreements.append(disagreement) }
  }
}
