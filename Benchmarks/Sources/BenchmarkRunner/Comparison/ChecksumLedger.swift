/// Compares the checksums of all stores with each other and, where the input has one, with the input.
///
/// Times of stores that do not give the same answers mean nothing, so one wrong value makes a comparison fail.
public struct ChecksumLedger: Sendable {
  /// A store that gave another value than the reference.
  public struct Disagreement: Hashable, Sendable, CustomStringConvertible {
    /// The store with the other value.
    public let store: String
    /// What it was measured with.
    public let input: MeasurementInput
    /// How many objects there were.
    public let size: Int
    /// The name of the figure.
    public let phase: String
    /// Its value.
    public let value: UInt64
    /// Who gave the value that it is compared with: "the input" or a store.
    public let reference: String
    /// The value that it is compared with.
    public let referenceValue: UInt64

    /// One sentence with store, phase and both values.
    public var description: String {
      "The stores do not agree: in \(phase) on \(size) \(input.rawValue), \(store) gives \(value) where \(reference) gives \(referenceValue)."
    }
  }

  private struct Key: Hashable {
    let input: MeasurementInput
    let size: Int
    let phase: String
  }

  /// Keyed by input, size and phase: who gave the value that counts, and the value.
  private var references: [Key: (name: String, value: UInt64)] = [:]
  /// Every disagreement once, in the order of their coming up.
  public private(set) var disagreements: [Disagreement] = []

  /// Makes a ledger that knows no value.
  public init() {}

  /// Says what the input gives in a phase.
  public mutating func expect(_ value: UInt64, in phase: String, on input: MeasurementInput, size: Int) {
    references[Key(input: input, size: size, phase: phase)] = ("the input", value)
  }

  /// Takes down what a store gave; without a value from the input, the first store's counts.
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
