#if Macros
  public import FoundationEssentials
  public import Holdfast

  /// Public types, and declarations that are legal but unusual: what the macros add to them compiles.
  public enum Oddities {
    public enum Lock: Int16, CaseIterable, AttributeValue { case chain, none, bolt }

    enum Measure: String, CaseIterable, AttributeValue { case metre, foot }

    @Composite public struct Size {
      public var width = 0.0
      var measure = Measure.metre
      private var secret = 0
    }

    @Entity(isAbstract: true) open class Thing: ManagedObject {
      public var made: Date = .distantPast
      var lock: Lock = .none
    }

    // A comment before the attribute,
    @Entity
    // one behind it,
    public /* and one within */ final class Gadget: Thing {
      @Attribute(.range(0...9))  // one digit
      // between attribute and property
      public var number: Int  // behind the property
      public var `class`: String? = .none
      var `in`: Oddities.Lock? = .bolt
      fileprivate var hidden = Lock.chain
      public private(set) var size = Size()
      @Relationship(inverse: \Oddities.Gadget.parts) public var whole: Optional<Gadget>
      @Relationship(deleteRule: .cascade) var parts: ToMany<Gadget>
      #if DEBUG || true
        static let isOdd = true
        var text: String { "\(number)" }
      #endif
      lazy var cache = 3
      weak var observer: AnyObject?
      #Index<Gadget>([\Oddities.Gadget.number, \.made], [\.size.width])
    }
  }
#endif
