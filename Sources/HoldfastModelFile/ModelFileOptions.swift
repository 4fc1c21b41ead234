/// The limits for model files, and whether regular expressions are accepted.
///
/// A file that exceeds a limit is refused with ``ModelFileError/Code/tooLarge`` before memory is allocated for it. The defaults are far
/// above every real model. Xcode's own largest models have a few thousand elements.
public struct ModelFileOptions: Sendable, Hashable {
  /// The maximum size of a `contents` file, and of a compiled model's texts, in bytes. Defaults to 64 MiB.
  ///
  /// In a compiled model, a shared text counts each time.
  public var maximumByteCount = 64 << 20
  /// The maximum depth of nested elements. Defaults to 64. A model needs 6.
  public var maximumDepth = 64
  /// The maximum number of elements. Defaults to 100,000.
  public var maximumElementCount = 100_000
  /// The maximum number of XML attributes, or of values in a compiled model's lists. Defaults to 2,000,000.
  ///
  /// In a compiled model, a shared list counts each time.
  public var maximumAttributeCount = 2_000_000
  /// The maximum number of XML attributes of one element. Defaults to 256.
  public var maximumAttributesPerElement = 256
  /// The maximum size of an XML attribute's value, as written, in bytes. Defaults to 1 MiB.
  public var maximumValueByteCount = 1 << 20
  /// The maximum number of files and folders in a bundle. Defaults to 10,000.
  public var maximumFileCount = 10_000
  /// The maximum number of entities, and of configurations. Defaults to 5,000. A model has at most 4,096 entities, whatever this limit is.
  public var maximumEntityCount = 5_000
  /// The maximum number of properties of all entities, including inherited ones. Defaults to 200,000.
  public var maximumPropertyCount = 200_000
  /// Whether a model with a regular expression is refused. Defaults to false.
  ///
  /// A regular expression is code, and some run practically forever on a short text. Set this for models from untrusted sources.
  public var refusesPatterns = false

  /// Creates options with default values.
  public init() {}
}
