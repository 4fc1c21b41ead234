public import HoldfastStore

/// Limits the memory for the rows of a file, because a small file from an untrusted source can contain huge rows.
public struct RowMemory {
  private let limit: Int
  private var taken = 0

  /// Creates a counter without rows.
  ///
  /// - Parameters:
  ///   - options: The options with the limit.
  ///   - fileByteCount: The size of the file in bytes.
  public init(_ options: WholeFileOptions, fileByteCount: Int64) {
    let multiple = fileByteCount.multipliedReportingOverflow(by: 128)
    limit = options.maximumRowByteCount ?? (multiple.overflow ? .max : Int(clamping: (64 << 20) + min(multiple.partialValue, .max / 2)))
  }

  /// Counts rows of an entity.
  ///
  /// - Returns: An error reason if the rows exceed the limit, otherwise nil.
  public mutating func add(_ rowCount: Int, _ layout: RowLayout) -> String? {
    let product = rowCount.multipliedReportingOverflow(by: layout.fixedByteCount)
    let sum = taken.addingReportingOverflow(product.partialValue)
    taken = product.overflow || sum.overflow ? .max : sum.partialValue
    if taken <= limit { return nil }
    return "The rows take at least \(taken) bytes of memory; the limit is \(limit) bytes. To allow more, raise maximumRowByteCount."
  }

  /// Counts all rows of a generation.
  mutating func add(_ generation: TableGeneration) -> String? {
    for entity in generation.schema.model.entities {
      if let excess = add(generation.rowCount(of: entity.index), entity.layout) { return excess }
    }
    return nil
  }
}
