public import HoldfastStore

/// A file format in two functions: records to bytes, and bytes to records.
///
/// This is the easiest way to write a store. The framework manages the UUID, model, metadata, keys, generations and digest, merges saves of
/// other processes, and writes the file durably. A ``StoreFileFormat`` is faster: it reads and writes rows without creating values.
///
/// ```swift
/// struct LineFormat: DocumentFormat {
///   let storeType = "lines"
///
///   func encode(_ records: [DocumentRecord], header: String) throws -> [UInt8] {
///     let lines = try records.map { String(decoding: try JSONEncoder().encode([$0.entity: $0.fields]), as: UTF8.self) }
///     return Array(([header] + lines).joined(separator: "\n").utf8)
///   }
///
///   func decode(_ bytes: [UInt8]) throws -> [DocumentRecord] {
///     try bytes.split(separator: UInt8(ascii: "\n")).dropFirst().map { line in
///       let record = try JSONDecoder().decode([String: [String: String]].self, from: Data(line))
///       return DocumentRecord(entity: record.first?.key ?? "", fields: record.first?.value ?? [:])
///     }
///   }
/// }
/// ```
///
/// `StoreDescription.document(_:at:isReadOnly:options:)` describes a store in such a file.
///
/// Opening, saving, and reading the metadata of a closed store take time and memory proportional to the size of the file.
///
/// To detect mistakes in a format, each save also decodes the bytes that it has encoded. If the records differ, the
/// save throws `unstorableValue` and the file is unchanged.
public protocol DocumentFormat: Sendable {
  /// The name of the store type, such as "CSV", for messages and ``/HoldfastStore/StoreDescription/type``.
  var storeType: String { get }

  /// Returns the contents of a file.
  ///
  /// - Parameters:
  ///   - records: All objects, sorted by entity in the order of the model, then by key.
  ///   - header: The framework's description of the store. It consists of letters, digits, `:`, `+`, `/` and `=`. Write it unchanged,
  ///     before any record.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unstorableValue` for a value that the format can't represent.
  func encode(_ records: [DocumentRecord], header: String) throws -> [UInt8]

  /// Returns the records of a file, in any order.
  ///
  /// The digest of the bytes has been verified, unless the file was opened with ``WholeFileOptions/allowsUnverified``.
  ///
  /// - Throws: Any error, for contents that the format can't read. Opening then throws `damaged` with that error as the cause, or rethrows
  ///   it if it is a ``/HoldfastStore/StoreError``. A `DecodingError` is replaced by one without values.
  func decode(_ bytes: [UInt8]) throws -> [DocumentRecord]
}

extension StoreDescription {
  /// Describes a store in a file that has a document format.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - isReadOnly: Whether the store refuses every change and writes nothing. Defaults to false.
  ///   - options: The options of the store.
  public static func document(
    _ format: some DocumentFormat, at path: String, isReadOnly: Bool = false, options: WholeFileOptions = WholeFileOptions()
  ) -> StoreDescription {
    var options = options
    if isReadOnly { options.file.isReadOnly = true }
    return StoreDescription(format: DocumentFile(format, path, options), at: path, options: options)
      .relocatable(options) { .document(format, at: $0, options: $1) }
  }
}
